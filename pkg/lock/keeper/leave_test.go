package keeper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestAReleaseGivesTheKeyBackAsOrdered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		how := lock.Leave{Unclean: true, Keep: time.Second}
		r.Release(id, how)
		r.mustBe(id, keeper.PhaseReleasing)
		synctest.Wait()
		r.mustBe(id, keeper.PhaseReleased)
		calls := r.store.called("release")
		if len(calls) != 1 || calls[0].leave != how || r.store.holder(id.Key) != "" {
			t.Fatalf("releases %+v", calls)
		}
		r.Release(id, how) // again: nothing
		r.Abandon(id)
		elapse(time.Minute)
		r.mustBe(id, keeper.PhaseReleased)
		if n := len(r.store.called("renew")); n > 0 {
			t.Fatalf("%d renewals after the release", n)
		}
	})
}

func TestAReleaseIsRepeatedUntilItIsAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		r.store.setFault(always(cut))
		r.Release(id, lock.Leave{})
		elapse(ttl / 2)
		s := r.mustBe(id, keeper.PhaseReleasing)
		if !errors.Is(s.Err, lock.ErrUnknown) || s.ErrSince.IsZero() {
			t.Fatalf("state %+v", s)
		}
		r.store.setFault(always(pass))
		elapse(3 * time.Second)
		if s := r.mustBe(id, keeper.PhaseReleased); s.Err != nil {
			t.Fatalf("error %v", s.Err)
		}
	})
}

func TestAReleaseThatIsNeverAnsweredEndsWithTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		elapse(time.Minute)
		r.store.setFault(always(cut))
		r.Release(id, lock.Leave{})
		elapse(ttl - time.Millisecond)
		r.mustBe(id, keeper.PhaseReleasing)
		elapse(lock.Drift(ttl) + time.Second)
		r.mustBe(id, keeper.PhaseReleased)
		if r.store.remaining(id.Key) > 0 {
			t.Fatal("the key still lives")
		}
	})
}

func TestAReleaseOfWhatIsLostIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		r.store.remove(key(1))
		r.store.plant(key(1), "there/b/1", time.Hour)
		r.Release(idOf(1, "a"), lock.Leave{})
		synctest.Wait()
		r.mustBe(idOf(1, "a"), keeper.PhaseReleased)
		if r.store.holder(key(1)) != "there/b/1" || len(r.observer.losses()) != 0 {
			t.Fatal("the successor was touched, or a loss told")
		}
	})
}

func TestAnAdoptedGrantCanBeReleasedBeforeItsFirstAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(func(c call) fault { return fault{hang: c.op == "renew"} })
		r.Adopt(r.store.plant(id.Key, id.Owner, time.Minute), terms)
		synctest.Wait()
		r.Release(id, lock.Leave{})
		synctest.Wait()
		r.mustBe(id, keeper.PhaseReleased)
		if !r.Health().RoundDone {
			t.Fatal("the round waits for a grant that was given back")
		}
	})
}

func TestOrdersDuringAnAcquireWaitForItsEnd(t *testing.T) {
	orders := map[string]struct {
		order func(*rig, keeper.ID)
		end   keeper.Phase
	}{
		"release": {func(r *rig, id keeper.ID) { r.Release(id, lock.Leave{}) }, keeper.PhaseReleased},
		"abandon": {func(r *rig, id keeper.ID) { r.Abandon(id) }, keeper.PhaseAbandoned},
	}
	answers := map[string]fault{
		"granted":      {delay: time.Second},
		"reply lost":   {delay: time.Second, lose: true},
		"no answer":    {hang: true},
		"not received": {delay: time.Second, err: errCut},
	}
	for order, o := range orders {
		for answer, f := range answers {
			t.Run(order+", "+answer, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := newRig(t)
					r.store.setFault(func(c call) fault {
						if c.op == "acquire" {
							return f
						}
						return pass
					})
					id := idOf(1, "a")
					r.Acquire(want(id))
					elapse(500 * time.Millisecond)
					o.order(r, id)
					elapse(5 * time.Second)
					r.mustBe(id, o.end)
					if h := r.store.holder(id.Key); h != "" {
						t.Fatalf("%s was left in the store", h)
					}
				})
			})
		}
	}
}

func TestAWaiterThatNeverDoubtedLeavesWithoutACall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Hour)
		r.Acquire(want(idOf(1, "a")))
		elapse(time.Second)
		r.Abandon(idOf(1, "a"))
		r.mustBe(idOf(1, "a"), keeper.PhaseAbandoned)
		if n := len(r.store.called("abandon")); n != 0 {
			t.Fatalf("%d calls", n)
		}
	})
}

func TestAWaiterInAQueueLeavesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Hour)
		w := want(idOf(1, "a"))
		w.Request.Queue = true
		r.Acquire(w)
		elapse(time.Second)
		r.Abandon(idOf(1, "a"))
		synctest.Wait()
		r.mustBe(idOf(1, "a"), keeper.PhaseAbandoned)
		if n := len(r.store.called("abandon")); n != 1 {
			t.Fatalf("%d calls", n)
		}
	})
}

func TestAnAbandonWithoutAnswerEndsWithTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(always(fault{lose: true}))
		r.Acquire(want(id))
		elapse(time.Second)
		r.store.setFault(always(cut))
		r.Abandon(id)
		elapse(ttl - 2*time.Second)
		r.mustBe(id, keeper.PhaseAbandoning)
		elapse(5 * time.Second)
		r.mustBe(id, keeper.PhaseAbandoned)
		if r.store.remaining(id.Key) > 0 {
			t.Fatal("the key still lives")
		}
	})
}

func TestAnAbandonCountsTheTTLFromTheEndOfTheAcquireItWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(func(c call) fault {
			if c.op == "acquire" {
				return fault{delay: 1900 * time.Millisecond, lose: true}
			}
			return cut
		})
		r.Acquire(want(id))
		elapse(100 * time.Millisecond)
		r.Abandon(id)
		for s, _ := r.State(id); s.Phase != keeper.PhaseAbandoned; s, _ = r.State(id) {
			elapse(100 * time.Millisecond)
		}
		if left := r.store.remaining(id.Key); left > 0 {
			t.Fatalf("abandoned while the key lives for %s", left)
		}
	})
}

func TestAHeldGrantThatIsCalledOffIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		r.AbandonFor(idOf(1, "a"), time.Second)
		synctest.Wait()
		r.mustBe(idOf(1, "a"), keeper.PhaseAbandoned)
		if h := r.store.holder(key(1)); h != "" {
			t.Fatalf("%s still holds", h)
		}
	})
}

func TestALeftoverOfADeadProcessIsSwept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "dead")
		r.store.plant(id.Key, id.Owner, time.Hour)
		r.Abandon(id) // not known, and no word on how long it may live
		if _, known := r.State(id); known {
			t.Fatal("abandoned without a ttl")
		}
		r.store.setFault(always(cut))
		r.AbandonFor(id, time.Minute)
		elapse(30 * time.Second)
		r.mustBe(id, keeper.PhaseAbandoning)
		r.store.setFault(always(pass))
		elapse(3 * time.Second)
		r.mustBe(id, keeper.PhaseAbandoned)
		if h := r.store.holder(id.Key); h != "" {
			t.Fatalf("%s still holds", h)
		}
	})
}

func TestAForgottenEntryLeavesTheStoreAloneAndItsSuccessorWaitsForItsCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(always(fault{delay: time.Second}))
		r.Acquire(want(id))
		elapse(100 * time.Millisecond)
		r.Forget(id)
		if _, known := r.State(id); known {
			t.Fatal("still known")
		}
		r.Acquire(want(id)) // the rig checks that the two calls do not overlap
		elapse(3 * time.Second)
		if s := r.mustBe(id, keeper.PhaseHeld); !s.Acquired.Again {
			t.Fatal("the forgotten acquire left nothing in the store")
		}
		r.Forget(id)
		elapse(time.Second)
		if h := r.store.holder(id.Key); h != id.Owner {
			t.Fatalf("forgetting removed the key; holder %q", h)
		}
	})
}
