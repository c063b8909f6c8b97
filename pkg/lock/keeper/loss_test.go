package keeper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestALossIsUrgentAndNamesWhoHasTheKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		r.drain()
		r.store.remove(id.Key)
		r.store.plant(id.Key, "there/b/1", time.Hour)
		elapse(terms.RenewInterval)
		events := r.drain()
		if len(events) != 1 || events[0] != (keeper.Event{ID: id, Urgent: true}) {
			t.Fatalf("events %v", events)
		}
		if s := r.mustBe(id, keeper.PhaseLost); s.Seen.Owner != "there/b/1" || !errors.Is(s.Err, lock.ErrLost) {
			t.Fatalf("state %+v", s)
		}
		before := len(r.store.called("renew"))
		elapse(time.Minute)
		if n := len(r.store.called("renew")); n != before {
			t.Fatalf("%d renewals of a lost grant", n-before)
		}
	})
}

// C21: two owners alternate on one key at 20 handovers a second.
func TestEndingOneTenureNeverTouchesTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		short := keeper.Terms{TTL: 2 * time.Second, RenewInterval: 20 * time.Millisecond}
		r.store.setFault(always(fault{delay: 5 * time.Millisecond, reply: 5 * time.Millisecond}))
		ids := []keeper.ID{idOf(1, "a"), idOf(1, "b")}
		order := func(id keeper.ID) {
			r.Acquire(keeper.Want{Request: lock.Request{Key: id.Key, Owner: id.Owner, TTL: short.TTL}, Terms: short})
		}
		order(ids[0])
		for i := range 400 {
			elapse(25 * time.Millisecond)
			now, then := ids[i%2], ids[(i+1)%2]
			r.mustBe(now, keeper.PhaseHeld)
			r.Release(now, lock.Leave{})
			elapse(25 * time.Millisecond)
			r.mustBe(now, keeper.PhaseReleased)
			r.Forget(now)
			order(then)
		}
		elapse(3 * time.Second) // one and a half ttl
		r.mustBe(ids[0], keeper.PhaseHeld)
		if left := r.store.remaining(key(1)); left < time.Second {
			t.Fatalf("%s left", left)
		}
		if lost := r.observer.losses(); len(lost) > 0 {
			t.Fatalf("%d false losses", len(lost))
		}
	})
}

// C41: a release at the very moment of a renewal, with the next tenure of the same owner.
func TestAReleaseAtTheTickIsNoLoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		late := time.Duration(0)
		r.store.setFault(func(c call) fault {
			if c.op != "renew" {
				return pass
			}
			r.Release(id, lock.Leave{})
			return fault{delay: late} // so the release may be there before the renewal
		})
		for round := range 1000 {
			late = time.Duration(round%3) * 10 * time.Millisecond
			r.hold(id)
			elapse(terms.RenewInterval)
			r.mustBe(id, keeper.PhaseReleased)
			r.Forget(id)
		}
		if n := len(r.store.called("renew")); n < 1000 {
			t.Fatalf("%d renewals in 1000 rounds", n)
		}
		if lost := r.observer.losses(); len(lost) > 0 {
			t.Fatalf("%d false losses", len(lost))
		}
	})
}

// The renewal of one tenure is still under way when the next one of the same owner has begun.
func TestALateAnswerIsNoLossForTheNextTenure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(func(c call) fault { return fault{delay: 100 * time.Millisecond * time.Duration(len(c.renewed))} })
		for range 100 {
			r.hold(id)
			for n := len(r.store.called("renew")); n == len(r.store.called("renew")); {
				elapse(50 * time.Millisecond)
			}
			r.Release(id, lock.Leave{})
			synctest.Wait()
			r.mustBe(id, keeper.PhaseReleased)
			r.Forget(id)
			r.hold(id)
			elapse(200 * time.Millisecond)
			r.mustBe(id, keeper.PhaseHeld)
			r.Release(id, lock.Leave{})
			synctest.Wait()
			r.Forget(id)
		}
		if lost := r.observer.losses(); len(lost) > 0 {
			t.Fatalf("%d false losses", len(lost))
		}
	})
}

func TestTheAnswerForAForgottenGrantDoesNotReachItsSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		r.store.setFault(func(c call) fault { return fault{delay: 100 * time.Millisecond} })
		r.store.remove(id.Key)
		for len(r.store.called("renew")) == 0 {
			elapse(10 * time.Millisecond)
		}
		r.Forget(id) // the old renewal will be answered with a loss
		g := lock.Grant{Key: id.Key, Owner: id.Owner, Token: "elsewhere", TTL: ttl}
		r.store.setFault(always(fault{hang: true}))
		r.Adopt(g, terms)
		elapse(150 * time.Millisecond)
		r.mustBe(id, keeper.PhaseHeld)
		if lost := r.observer.losses(); len(lost) > 0 {
			t.Fatal("false loss")
		}
	})
}

// C27: a panic in the keeping of one lock costs that lock alone.
func TestAPanicCostsOneLockOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 300
		r := newRig(t)
		for i := range n {
			r.Acquire(want(idOf(i, "a")))
		}
		synctest.Wait()
		bad := key(137)
		r.store.setFault(func(c call) fault {
			if c.op == "renew" && c.has(bad) {
				return fault{panics: "nil entry"}
			}
			return pass
		})
		for i := range 500 { // entries come and go meanwhile, 50 a second
			r.Acquire(want(idOf(1000+i, "a")))
			elapse(20 * time.Millisecond)
			r.Release(idOf(1000+i, "a"), lock.Leave{})
			r.Forget(idOf(1000+i-10, "a"))
		}
		s := r.mustBe(idOf(137, "a"), keeper.PhaseLost)
		var p *keeper.PanicError
		if !errors.Is(s.Err, lock.ErrLost) || !errors.As(s.Err, &p) || p.Value != "nil entry" || len(p.Stack) == 0 {
			t.Fatalf("error %v", s.Err)
		}
		for i := range n {
			if i != 137 {
				r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
			}
			if left := r.store.remaining(key(i)); i != 137 && left < ttl/2 {
				t.Fatalf("%s has %s left", key(i), left)
			}
		}
		if got := r.observer.panicked; len(got) != 1 || got[0] != bad {
			t.Fatalf("panics told: %v", got)
		}
		if r.observer.late > 0 {
			t.Fatalf("others were renewed %s late", r.observer.late)
		}
		// The store still has the key, so it can be given back.
		r.store.setFault(always(pass))
		r.Release(idOf(137, "a"), lock.Leave{Unclean: true})
		synctest.Wait()
		r.mustBe(idOf(137, "a"), keeper.PhaseReleased)
	})
}

func TestAPanicInAnAcquireOrReleaseIsContained(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		r.hold(idOf(2, "a"))
		r.store.setFault(func(c call) fault {
			if c.has(key(1)) || c.has(key(3)) || c.op == "inspect" {
				return fault{panics: "boom"}
			}
			return pass
		})
		r.Release(idOf(1, "a"), lock.Leave{})
		r.Acquire(want(idOf(3, "a")))
		elapse(time.Second)
		r.mustBe(idOf(1, "a"), keeper.PhaseReleasing)
		r.mustBe(idOf(3, "a"), keeper.PhaseLost)
		elapse(ttl + 10*time.Second)
		r.mustBe(idOf(1, "a"), keeper.PhaseReleased)
		r.mustBe(idOf(2, "a"), keeper.PhaseHeld)
		r.store.setFault(always(pass))
		r.Abandon(idOf(3, "a"))
		synctest.Wait()
		r.mustBe(idOf(3, "a"), keeper.PhaseAbandoned)
	})
}

func TestAnObserverThatPanicsCostsNoLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.observer.panics = true
		for i := range 5 {
			r.hold(idOf(i, "a"))
		}
		r.store.remove(key(0))
		elapse(time.Minute)
		r.mustBe(idOf(0, "a"), keeper.PhaseLost)
		for i := 1; i < 5; i++ {
			r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
		}
	})
}
