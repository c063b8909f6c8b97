package locktest

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// retried asks for a tick also where its start was forsaken.
func (t *ticker) retried(o lock.Owner, later int64) lock.Request {
	r := t.ordered(o, later)
	r.Retry = true
	return r
}

// forsaken has ann start a tick under the plain key, which then runs out.
func (t *ticker) forsaken() lock.Grant {
	t.Helper()
	t.acquire(request(ann))
	g := t.started(t.retried(ann, 0))
	t.Advance(ttl + time.Millisecond)
	t.free()
	return g
}

var retryClauses = []clause{
	{"a tick that was started is refused while anybody holds the plain key, and claimed once nobody does", ticking(func(t *ticker) {
		plain := t.acquire(request(ann)).Grant
		g := t.started(t.retried(ann, 0))
		if v := t.refused(t.retried(cleo, 0)); v.Stage != lock.StageStarted || v.Owner != ann {
			t.Fatalf("seen %+v", v)
		}
		t.release(plain, lock.Leave{})
		other := t.claim(t.retried(cleo, 0))
		t.higher(g, other)
		t.at(t.stamp(other, lock.StageStarted), lock.StageStarted)
	})},
	{"a tick of a series is under the same plain key", ticking(func(t *ticker) {
		r := t.retried(cleo, 0)
		r.Key.Series = "a"
		plain := t.acquire(request(ann)).Grant
		first := r
		first.Owner = ann
		g := t.started(first)
		t.refused(r)
		t.release(plain, lock.Leave{})
		t.higher(g, t.claim(r))
	})},
	{"something foreign under the plain key keeps a tick from being claimed anew", ticking(func(t *ticker) {
		g := t.forsaken()
		for _, lasting := range []time.Duration{0, time.Hour} {
			t.Store.Plant(key, "string", "x", lasting)
			t.refused(t.retried(cleo, 0))
		}
		t.at(g, lock.StageStarted)
	})},
	{"a tick whose record was made again after data was lost is claimed anew only once its runner had the ttl to take its plain key", ticking(func(t *ticker) {
		t.acquire(request(ann))
		g := t.started(t.retried(ann, 0))
		t.Store.Flush()
		g = t.stamp(g, lock.StageStarted)
		t.refused(t.retried(cleo, 0))
		plain := t.acquire(request(ann)).Grant
		t.Advance(ttl + time.Millisecond)
		t.free()
		g = t.stamp(g, lock.StageStarted)
		other := t.claim(t.retried(cleo, 0))
		t.higher(g, other)
		t.higher(plain, other)
	})},
	{"a tick that was started is never claimed by one that does not ask for a retry", ticking(func(t *ticker) {
		g := t.forsaken()
		t.refused(t.ordered(cleo, 0))
		t.refused(t.of(cleo, 0))
		t.at(g, lock.StageStarted)
	})},
	{"a tick that has an outcome is never claimed anew", ticking(func(t *ticker) {
		for later, outcome := range []lock.Stage{lock.StageSucceeded, lock.StageFailed} {
			g := t.stamp(t.started(t.retried(ann, int64(later))), outcome)
			if v := t.refused(t.retried(cleo, int64(later))); v.Stage != outcome {
				t.Fatalf("seen %+v", v)
			}
			t.at(g, outcome)
		}
	})},
	{"whoever started it finds its own start, whoever has the plain key", ticking(func(t *ticker) {
		g := t.forsaken()
		if a := t.acquire(t.retried(ann, 0)); !a.Again || a.Grant.Token != g.Token {
			t.Fatalf("again %+v", a)
		}
	})},
	{"a former grant neither stamps, renews nor puts back a tick that was claimed anew", ticking(func(t *ticker) {
		g := t.forsaken()
		other := t.claim(t.retried(cleo, 0))
		for _, s := range []lock.Stage{lock.StageStarted, lock.StageSucceeded, lock.StageFailed} {
			if v := t.notStamped(g, s); v.Owner != cleo || v.Stage != lock.StageClaimed {
				t.Fatalf("seen %+v", v)
			}
		}
		t.lost(t.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token)
		t.lost(t.Backend.Release(t.Context(), g, lock.Leave{PutBack: true}), g.Token)
		t.at(other, lock.StageClaimed)
		t.stamp(t.stamp(other, lock.StageStarted), lock.StageSucceeded)
		t.notStamped(g, lock.StageFailed)
		t.at(other, lock.StageSucceeded)
	})},
	{"a former grant makes no record where the one that took the tick is gone in turn", ticking(func(t *ticker) {
		first := t.forsaken()
		t.claim(t.retried(cleo, 0))
		t.Advance(ttl + time.Millisecond)
		t.notStamped(first, lock.StageSucceeded)
		second := t.stamp(t.claim(t.retried(bob, 0)), lock.StageStarted)
		third := t.claim(t.retried(cleo, 0))
		t.notStamped(first, lock.StageStarted)
		t.notStamped(second, lock.StageStarted)
		t.release(third, lock.Leave{})
		t.notStamped(first, lock.StageStarted)
		t.notStamped(second, lock.StageStarted)
		t.vacant(third.Key)
	})},
	{"a claim of a forsaken tick that ran out, or is put back, leaves it to the next one", ticking(func(t *ticker) {
		t.forsaken()
		t.claim(t.retried(cleo, 0))
		t.Advance(ttl + time.Millisecond)
		g := t.claim(t.retried(bob, 0))
		t.release(g, lock.Leave{})
		t.started(t.ordered(ann, 0))
	})},
	{"a tick that was taken still counts as started towards older ones", ticking(func(t *ticker) {
		t.forsaken()
		t.claim(t.retried(cleo, 0))
		if v := t.refusedAsOld(t.retried(bob, -1), lock.TooOldSuperseded); v.Newest != t.minute {
			t.Fatalf("seen %+v", v)
		}
	})},
	{"a forsaken tick is too old once a newer one was started, and so is the claim of one", ticking(func(t *ticker) {
		t.forsaken()
		claimed := t.claim(t.retried(cleo, 0))
		newer := t.started(t.ordered(bob, 1))
		_, err := t.Stamp(t.Context(), claimed, lock.StageStarted)
		t.tooOld(err, lock.TooOldSuperseded)
		t.release(claimed, lock.Leave{})
		t.refusedAsOld(t.retried(cleo, 0), lock.TooOldSuperseded)
		t.at(newer, lock.StageStarted)
	})},
	{"a forsaken start that a newer one overtook stays as it is", ticking(func(t *ticker) {
		g := t.forsaken()
		t.started(t.ordered(bob, 1))
		t.refusedAsOld(t.retried(cleo, 0), lock.TooOldSuperseded)
		t.at(g, lock.StageStarted)
	})},
}
