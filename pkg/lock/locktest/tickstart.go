package locktest

import (
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var stampClauses = []clause{
	{"a tick that was started is nobody else's, and is remembered for two days", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		v := t.at(g, lock.StageStarted)
		t.about("remaining", v.Remaining, lock.TickRetention)
		if v.Newest != t.minute {
			t.Fatalf("newest %d, want %d", v.Newest, t.minute)
		}
		t.Advance(lock.MaxTickAge - time.Hour)
		if v := t.refused(t.of(cleo, 0)); v.Stage != lock.StageStarted || v.Owner != ann {
			t.Fatalf("seen %+v", v)
		}
	})},
	{"a stamp that is sent again is harmless, and so is one that comes late", ticking(func(t *ticker) {
		claimed := t.claim(t.of(ann, 0))
		g := t.stamp(claimed, lock.StageStarted)
		t.stamp(claimed, lock.StageStarted)
		t.stamp(g, lock.StageStarted)
		over := t.stamp(g, lock.StageSucceeded)
		for _, late := range []lock.Grant{claimed, g, over} {
			for _, s := range []lock.Stage{lock.StageStarted, lock.StageFailed, lock.StageSucceeded} {
				if got, err := t.Stamp(t.Context(), late, s); err != nil || got.Stage != lock.StageSucceeded {
					t.Fatalf("%s on %s: %+v, %v", s, late.Token, got, err)
				}
			}
		}
		t.about("remaining", t.at(g, lock.StageSucceeded).Remaining, lock.TickRetention)
	})},
	{"an outcome is refused to others like a start", ticking(func(t *ticker) {
		g := t.stamp(t.started(t.of(ann, 0)), lock.StageFailed)
		if v := t.refused(t.of(cleo, 0)); v.Stage != lock.StageFailed {
			t.Fatalf("seen %+v", v)
		}
		if a := t.acquire(t.of(ann, 0)); !a.Again || a.Grant.Stage != lock.StageFailed || a.Grant.Token != g.Token {
			t.Fatalf("again %+v", a)
		}
	})},
	{"a renewal stamps along the way, and tells where the tick stands", ticking(func(t *ticker) {
		claimed := t.claim(t.of(ann, 0))
		r := t.renew(lock.Extension{Grant: claimed, TTL: ttl, Stage: lock.StageStarted})
		if r.Err != nil || r.Grant.Stage != lock.StageStarted {
			t.Fatalf("renewed %+v", r)
		}
		t.validFor(r.Grant, ttl)
		if g := t.renewed(claimed, ttl); g.Stage != lock.StageStarted || g.Token != r.Grant.Token {
			t.Fatalf("renewed %+v", g)
		}
		t.at(claimed, lock.StageStarted)
	})},
	{"what was started is renewed beyond its retention", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		for range 4 {
			t.Advance(lock.TickRetention / 2)
			g = t.renewed(g, ttl)
		}
		t.about("remaining", t.at(g, lock.StageStarted).Remaining, lock.TickRetention)
	})},
	// Redis emptied while a tick runs.
	{"a record that was lost is made again by a renewal or an outcome of what was started", ticking(func(t *ticker) {
		g := t.started(t.ordered(ann, 1))
		t.Store.Flush()
		t.renewed(g, ttl)
		t.at(g, lock.StageStarted)
		t.refusedAsOld(t.ordered(cleo, 0), lock.TooOldSuperseded)
		t.Store.Flush()
		t.stamp(g, lock.StageSucceeded)
		t.at(g, lock.StageSucceeded)
		t.higher(g, t.claim(t.of(cleo, 2)))
	})},
	{"what was started takes over a mere claim of another, who then cannot start", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		t.Store.Flush()
		other := t.claim(t.of(cleo, 0))
		t.renewed(g, ttl)
		t.at(g, lock.StageStarted)
		if v := t.notStamped(other, lock.StageStarted); v.Owner != ann || v.Stage != lock.StageStarted {
			t.Fatalf("seen %+v", v)
		}
	})},
	{"what another one started, or ended, is never taken over", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		for _, s := range []lock.Stage{lock.StageStarted, lock.StageSucceeded, lock.StageFailed} {
			t.Store.Flush()
			other := t.stamp(t.claim(t.of(cleo, 0)), s)
			if v := t.notStamped(g, lock.StageStarted); v.Owner != cleo || v.Stage != s {
				t.Fatalf("seen %+v", v)
			}
			t.lost(t.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token)
			t.at(other, s)
		}
	})},
	// A failover to a replica that is behind.
	{"a store that is back before the start is brought forward", ticking(func(t *ticker) {
		claimed := t.claim(t.ordered(ann, 0))
		g := t.stamp(claimed, lock.StageStarted)
		t.Store.Plant(g.Key, "string", string(claimed.Token), ttl)
		t.renewed(g, ttl)
		t.at(g, lock.StageStarted)
		over := t.stamp(g, lock.StageFailed)
		t.Store.Plant(g.Key, "string", string(g.Token), lock.TickRetention)
		t.renewed(over, ttl)
		t.at(g, lock.StageFailed)
	})},
	{"a record that was removed by hand is known to have been started", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		t.Store.Delete(g.Key)
		t.refusedAsOld(t.of(cleo, 0), lock.TooOldSuperseded)
		t.renewed(g, ttl)
		t.at(g, lock.StageStarted)
	})},
	{"a start is hinted at, so that others hear of it soon", ticking(func(t *ticker) {
		n, ok := t.Backend.(lock.Notifier)
		if !ok {
			return
		}
		hints := t.listening(n)
		g := t.started(t.of(ann, 0))
		t.hinted(hints, g.Key)
		t.release(t.claim(t.of(ann, 1)), lock.Leave{})
		t.hinted(hints, key.At(t.minute+1))
	})},
}

var putBackClauses = []clause{
	{"what was started is put back only where that is vouched for", ticking(func(t *ticker) {
		claimed := t.claim(t.of(ann, 0))
		g := t.stamp(claimed, lock.StageStarted)
		t.kept(g, lock.Leave{})
		t.kept(claimed, lock.Leave{})
		t.at(g, lock.StageStarted)
		t.release(g, lock.Leave{PutBack: true})
		t.vacant(g.Key)
		t.release(g, lock.Leave{PutBack: true})
		t.release(g, lock.Leave{})
		t.started(t.of(cleo, 0))
	})},
	{"what is over stays, and is not put back", ticking(func(t *ticker) {
		g := t.stamp(t.started(t.of(ann, 0)), lock.StageSucceeded)
		t.kept(g, lock.Leave{PutBack: true})
		t.release(g, lock.Leave{})
		t.at(g, lock.StageSucceeded)
	})},
	{"a stamp that was under way when the tick was put back makes it no more", ticking(func(t *ticker) {
		g := t.started(t.of(ann, 0))
		t.release(g, lock.Leave{PutBack: true})
		t.notStamped(g, lock.StageStarted)
		t.lost(t.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token)
		t.vacant(g.Key)
		other := t.claim(t.of(cleo, 0))
		t.notStamped(g, lock.StageSucceeded)
		t.at(other, lock.StageClaimed)
	})},
	{"nobody puts back what is another's", ticking(func(t *ticker) {
		g := t.claim(t.of(ann, 0))
		t.Advance(ttl + time.Millisecond)
		other := t.started(t.of(cleo, 0))
		for _, how := range []lock.Leave{{}, {PutBack: true}} {
			if err := t.Backend.Release(t.Context(), g, how); !errors.Is(err, lock.ErrLost) {
				t.Fatalf("release: %v", err)
			}
		}
		t.at(other, lock.StageStarted)
	})},
	{"a tick that is not newer than the newest started is refused where they are ordered, and granted where not", ticking(func(t *ticker) {
		t.claim(t.ordered(bob, 2))
		g := t.started(t.ordered(ann, 1))
		if v := t.refusedAsOld(t.ordered(cleo, 0), lock.TooOldSuperseded); v.Newest != t.minute+1 {
			t.Fatalf("seen %+v", v)
		}
		if v := t.refused(t.ordered(cleo, 1)); v.Stage != lock.StageStarted {
			t.Fatalf("seen %+v", v)
		}
		t.stamp(g, lock.StageSucceeded)
		t.refusedAsOld(t.ordered(cleo, 0), lock.TooOldSuperseded)
		t.started(t.of(cleo, 0))
		t.started(t.ordered(cleo, 3))
	})},
	{"a claim is not started once a newer tick was, and stays as it is", ticking(func(t *ticker) {
		g := t.claim(t.ordered(ann, 0))
		unordered := t.claim(t.of(bob, -1))
		t.started(t.ordered(cleo, 1))
		_, err := t.Stamp(t.Context(), g, lock.StageStarted)
		t.tooOld(err, lock.TooOldSuperseded)
		t.tooOld(t.renew(lock.Extension{Grant: g, TTL: ttl, Stage: lock.StageStarted}).Err, lock.TooOldSuperseded)
		t.at(g, lock.StageClaimed)
		t.renewed(g, ttl)
		t.release(g, lock.Leave{})
		t.vacant(g.Key)
		t.stamp(unordered, lock.StageStarted)
	})},
	{"what was started before a newer tick goes on and ends", ticking(func(t *ticker) {
		g := t.started(t.ordered(ann, 0))
		t.started(t.of(cleo, 1))
		t.stamp(t.renewed(g, ttl), lock.StageSucceeded)
	})},
	{"a tick that was put back blocks no older one, in whatever order they are put back", ticking(func(t *ticker) {
		first := t.started(t.ordered(ann, 1))
		second := t.started(t.ordered(bob, 2))
		t.release(first, lock.Leave{PutBack: true})
		t.refusedAsOld(t.ordered(cleo, 1), lock.TooOldSuperseded)
		t.release(second, lock.Leave{PutBack: true})
		if v := t.look(second.Key); v.Newest != 0 {
			t.Fatalf("newest %d", v.Newest)
		}
		t.started(t.ordered(cleo, 0))
		t.started(t.ordered(cleo, 1))
	})},
}

var awaitedClauses = []clause{
	{"a holder hears that another home waits, for as long as it asks", func(b *bench) {
		g := b.acquire(settling(ann, settled)).Grant
		b.awaited(g, false)
		b.refused(settling(bob, settled))
		b.awaited(g, false)
		b.refused(request(cleo))
		b.awaited(g, false)
		b.refused(settling(cleo, afar))
		b.refused(settling(bob, settled))
		b.awaited(g, true)
		b.awaited(g, true)
		b.Advance(lock.AwaitedFor + time.Millisecond)
		b.awaited(g, false)
	}},
	{"the one that waited does not wait for itself", func(b *bench) {
		g := b.acquire(settling(ann, settled)).Grant
		b.refused(settling(cleo, afar))
		b.release(g, lock.Leave{})
		b.awaited(b.acquire(settling(cleo, afar)).Grant, false)
	}},
	{"something foreign is not told that anybody waits", func(b *bench) {
		b.Store.Plant(key, "string", "x", ttl)
		b.refused(settling(cleo, afar))
		b.Store.Delete(key)
		b.awaited(b.acquire(settling(ann, settled)).Grant, false)
	}},
}

// awaited must be what a renewal tells.
func (b *bench) awaited(g lock.Grant, want bool) {
	b.Helper()
	if r := b.renew(lock.Extension{Grant: g, TTL: ttl}); r.Err != nil || r.Awaited != want {
		b.Fatalf("renewed %+v, want awaited %v", r, want)
	}
}
