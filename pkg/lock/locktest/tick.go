package locktest

import (
	"errors"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var claimClauses = []clause{
	{"a tick is claimed for its ttl, and another owner is refused", ticking(func(t *ticker) {
		g := t.claim(t.of(ann, 0))
		t.validFor(g, ttl)
		t.about("remaining", t.at(g, lock.StageClaimed).Remaining, ttl)
		if v := t.refused(t.of(cleo, 0)); v.Stage != lock.StageClaimed || v.Owner != ann || v.Newest != 0 {
			t.Fatalf("seen %+v", v)
		}
		if a := t.acquire(t.of(ann, 0)); !a.Again || a.Grant.Token != g.Token {
			t.Fatalf("again %+v", a)
		}
	})},
	{"a tick, another tick and the plain key do not disturb each other", ticking(func(t *ticker) {
		g, next, plain := t.claim(t.of(ann, 0)), t.claim(t.of(bob, 1)), t.acquire(request(cleo)).Grant
		t.stamp(next, lock.StageStarted)
		t.release(plain, lock.Leave{})
		t.free()
		t.at(g, lock.StageClaimed)
		raw := t.acquire(with(ann, func(r *lock.Request) { r.Key = lock.Key{Name: "raw {1}", Raw: true}.At(t.minute) })).Grant
		t.at(raw, lock.StageClaimed)
	})},
	{"fencing tokens rise over the ticks of a key and the plain key alike", ticking(func(t *ticker) {
		far := t.of(ann, 1)
		far.Floor = lock.FencingToken(time.Now().Add(1000 * time.Hour).UnixMilli())
		first := t.claim(far)
		t.higher(first, t.claim(t.of(ann, 0)))
		plain := t.acquire(request(bob)).Grant
		t.higher(first, plain)
		t.higher(plain, t.claim(t.of(cleo, 2)))
	})},
	{"whoever saw the fencing token of a tick finds no data lost under the plain key", ticking(func(t *ticker) {
		seen := t.claim(t.of(ann, 0)).FencingToken
		r := settling(cleo, afar)
		r.Floor = seen + 1
		t.ended(t.acquire(r), lock.EndedNone, 0)
	})},
	{"a claim by somebody who knows a later fencing token than the store waits for whoever may run the tick", ticking(func(t *ticker) {
		r := t.of(ann, 0)
		r.Floor, r.Settle = lock.FencingToken(time.Now().UnixMilli())+1, lock.Settle{Delay: delay, Home: "elsewhere/"}
		t.ended(t.acquire(r), lock.EndedForgotten, ttl+delay)
		t.ended(t.acquire(r), lock.EndedForgotten, ttl+delay)
		next := t.of(bob, 1)
		next.Settle = r.Settle
		t.ended(t.acquire(next), lock.EndedForgotten, ttl+delay)
		t.Advance(ttl + delay + time.Millisecond)
		next.Key = next.Key.At(t.minute + 2)
		t.ended(t.acquire(next), lock.EndedNone, 0)
	})},
	{"a claim that ran out is taken over, and its owner can neither renew nor start", ticking(func(t *ticker) {
		old := t.claim(t.of(ann, 0))
		t.Advance(ttl + time.Millisecond)
		g := t.claim(t.of(cleo, 0))
		t.higher(old, g)
		if v := t.notStamped(old, lock.StageStarted); v.Owner != cleo || v.Stage != lock.StageClaimed {
			t.Fatalf("seen %+v", v)
		}
		t.lost(t.renew(lock.Extension{Grant: old, TTL: ttl}).Err, old.Token)
		t.at(g, lock.StageClaimed)
	})},
	{"a claim is renewed, and never made again once it is gone", ticking(func(t *ticker) {
		g := t.claim(t.of(ann, 0))
		t.Advance(ttl / 2)
		t.about("remaining", t.at(t.renewed(g, ttl), lock.StageClaimed).Remaining, ttl)
		t.Advance(ttl + time.Millisecond)
		t.notStamped(g, lock.StageStarted)
		t.notStamped(g, lock.StageFailed)
		t.lost(t.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token)
		t.vacant(g.Key)
	})},
	{"a claim that is put back is free at once, and blocks no later claim or start", ticking(func(t *ticker) {
		g := t.claim(t.ordered(ann, 0))
		t.release(g, lock.Leave{})
		t.vacant(g.Key)
		t.release(g, lock.Leave{})
		t.notStamped(g, lock.StageStarted)
		t.started(t.ordered(cleo, 0))
		t.release(g, lock.Leave{})
	})},
	{"a claim of which the answer was lost is abandoned, and one that was started is not", ticking(func(t *ticker) {
		g := t.claim(t.of(ann, 0))
		if err := t.Backend.Abandon(t.Context(), g.Key, ann); err != nil {
			t.Fatal(err)
		}
		t.vacant(g.Key)
		g = t.started(t.of(ann, 0))
		if err := t.Backend.Abandon(t.Context(), g.Key, ann); err != nil {
			t.Fatal(err)
		}
		t.at(g, lock.StageStarted)
	})},
	{"a tick that was due more than a day ago is too old, whatever stands there", ticking(func(t *ticker) {
		t.minute = lock.TickMinute(time.Now().Add(-lock.MaxTickAge)) + 3
		t.claim(t.of(ann, 0))
		old := t.of(ann, -4)
		t.refusedAsOld(old, lock.TooOldAge)
		t.Store.Plant(old.Key, "string", "x", ttl)
		t.refusedAsOld(old, lock.TooOldAge)
		t.Store.Plant(old.Key, "string", string(cleo)+"#7#started", ttl)
		if v := t.refusedAsOld(old, lock.TooOldAge); v.Stage != lock.StageStarted || v.Owner != cleo {
			t.Fatalf("seen %+v", v)
		}
	})},
	{"something foreign under a tick is never taken, started over or removed", ticking(func(t *ticker) {
		for _, text := range []string{"x", "a#1", "a#1#done", "released/a#1"} {
			g := t.claim(t.of(ann, 0))
			g = t.stamp(g, lock.StageStarted)
			t.Store.Plant(g.Key, "string", text, time.Hour)
			t.notStamped(g, lock.StageSucceeded)
			if err := t.Backend.Release(t.Context(), g, lock.Leave{PutBack: true}); !errors.Is(err, lock.ErrLost) {
				t.Fatalf("release: %v", err)
			}
			if v := t.look(g.Key); v.State != lock.ViewForeign || v.Stage != "" {
				t.Fatalf("%s: seen %+v", text, v)
			}
			t.Store.Flush()
			t.Store.Plant(g.Key, "string", text, time.Hour)
			if v := t.refused(t.of(bob, 0)); v.State != lock.ViewForeign {
				t.Fatalf("%s: seen %+v", text, v)
			}
			t.Store.Flush()
		}
	})},
	{"the ticks of two series have nothing in common but the order of fencing tokens", ticking(func(t *ticker) {
		in := func(series string, r lock.Request) lock.Request {
			r.Key.Series = series
			return r
		}
		a := t.started(in("a", t.ordered(ann, 1)))
		b := t.started(in("b", t.ordered(bob, 0)))
		none := t.started(t.ordered(cleo, 0))
		t.higher(a, b)
		t.higher(b, none)
		t.higher(none, t.acquire(request(bob)).Grant)
		t.refusedAsOld(in("a", t.ordered(bob, 0)), lock.TooOldSuperseded)
		t.refused(in("b", t.ordered(ann, 0)))
		t.release(b, lock.Leave{PutBack: true})
		t.at(a, lock.StageStarted)
		t.at(none, lock.StageStarted)
		t.started(in("b", t.ordered(ann, 0)))
	})},
	{"a plain key that is asked for with the fencing token of a series as floor has forgotten nothing", ticking(func(t *ticker) {
		r := t.of(ann, 0)
		r.Key.Series = "a"
		g := t.started(r)
		if a := t.acquire(with(bob, func(r *lock.Request) { r.Floor = g.FencingToken + 1 })); a.Before == lock.EndedForgotten {
			t.Fatalf("%+v", a)
		}
	})},
	{"of many owners at once one starts a tick", ticking(func(t *ticker) {
		owners := []lock.Owner{"a/1", "b/2", "c/3", "d/4", "e/5", "f/6", "g/7", "h/8"}
		startedBy := make([]bool, len(owners))
		var all sync.WaitGroup
		for i, o := range owners {
			all.Go(func() {
				if a, err := t.Backend.Acquire(t.Context(), t.of(o, 0)); err == nil {
					_, err = t.Stamp(t.Context(), a.Grant, lock.StageStarted)
					startedBy[i] = err == nil
				}
			})
		}
		all.Wait()
		n := 0
		for _, ok := range startedBy {
			if ok {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d owners started the tick", n)
		}
	})},
	{"a malformed tick or stamp is invalid, and leaves nothing", ticking(func(t *ticker) {
		g := t.claim(t.of(ann, 0))
		bad := map[string]error{"keep": t.Backend.Release(t.Context(), g, lock.Leave{Keep: time.Second})}
		for name, change := range map[string]func(*lock.Request){
			"negative": func(r *lock.Request) { r.Key.Tick = -1 },
			"far":      func(r *lock.Request) { r.Key.Tick = 1 << 60 },
			"since":    func(r *lock.Request) { r.Since = 1 },
			"retry":    func(r *lock.Request) { r.Key, r.Retry = key.Plain(), true },
			"series":   func(r *lock.Request) { r.Key = lock.Key{Name: key.Name, Series: "a"} },
			"colon":    func(r *lock.Request) { r.Key.Series = "a:b" },
		} {
			r := t.of(bob, 1)
			change(&r)
			_, bad[name] = t.Backend.Acquire(t.Context(), r)
		}
		_, bad["no stage"] = t.Stamp(t.Context(), g, "")
		_, bad["backwards"] = t.Stamp(t.Context(), g, lock.StageClaimed)
		_, bad["plain key"] = t.Stamp(t.Context(), t.acquire(request(ann)).Grant, lock.StageStarted)
		for name, err := range bad {
			if !errors.Is(err, lock.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		t.at(g, lock.StageClaimed)
		t.vacant(key.At(t.minute + 1))
	})},
}
