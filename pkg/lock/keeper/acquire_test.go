package keeper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestAFreeKeyIsGrantedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		began := time.Now()
		s := r.hold(idOf(1, "a"))
		if s.GrantedAt != began || !s.Acquired.Grant.Valid(began) || s.Acquired.Grant.Token == "" {
			t.Fatalf("state %+v", s)
		}
	})
}

// C01: the store granted the key and the answer was lost.
func TestALostReplyToAnAcquireEndsWithTheSameKeyHeld(t *testing.T) {
	for name, f := range map[string]fault{
		"connection cut":   {lose: true},
		"answer swallowed": {reply: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t)
				lost := false
				r.store.setFault(func(c call) fault {
					if c.op == "acquire" && !lost {
						lost = true
						return f
					}
					return pass
				})
				r.Acquire(want(idOf(1, "a")))
				elapse(3 * time.Second)
				s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
				if !s.Acquired.Again || s.Acquired.Grant.FencingToken != 1 || s.Err != nil || !s.ErrSince.IsZero() {
					t.Fatalf("state %+v", s)
				}
			})
		})
	}
}

func TestAWaiterTellsWhoHoldsAndGetsTheKeyWhenItIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Minute)
		r.Acquire(want(idOf(1, "a")))
		elapse(10 * time.Second)
		s := r.mustBe(idOf(1, "a"), keeper.PhaseWaiting)
		if s.Seen.Owner != "there/b/1" || !errors.Is(s.Err, lock.ErrHeld) || !s.ErrSince.IsZero() {
			t.Fatalf("state %+v", s)
		}
		// C43: the key goes away without anybody telling.
		r.store.remove(key(1))
		elapse(3 * time.Second)
		r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
	})
}

func TestAHintCutsTheWaitForItsKeyOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for n := range 2 {
			r.store.plant(key(n), "there/b/1", time.Hour)
			r.Acquire(want(idOf(n, "a")))
		}
		elapse(time.Minute) // both have come to the longest pause
		r.store.forgetCalls()
		r.store.remove(key(0), key(1))
		r.store.hint(key(1))
		elapse(50 * time.Millisecond)
		r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
		for _, c := range r.store.called("acquire") {
			if c.has(key(0)) && c.at.Before(time.Now().Add(-49*time.Millisecond)) {
				t.Fatal("a hint woke the waiter of another key")
			}
		}
	})
}

func TestAHintDuringAnAttemptIsNotForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Hour)
		r.Acquire(want(idOf(1, "a")))
		elapse(time.Minute)
		r.store.setFault(func(c call) fault {
			if c.op == "acquire" {
				return fault{reply: 500 * time.Millisecond} // it is refused first, and hears of it late
			}
			return pass
		})
		for n := len(r.store.called("acquire")); n == len(r.store.called("acquire")); {
			elapse(10 * time.Millisecond)
		}
		r.store.setFault(always(pass))
		r.store.remove(key(1))
		r.store.hint(key(1))
		elapse(500 * time.Millisecond)
		r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
	})
}

func TestAMissedHintWakesAllWithinASpread(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		const n = 100
		for i := range n {
			r.store.plant(key(i), "there/b/1", time.Hour)
			r.Acquire(want(idOf(i, "a")))
		}
		elapse(time.Minute)
		for i := range n {
			r.store.remove(key(i))
		}
		r.store.forgetCalls()
		r.store.missed()
		elapse(1500 * time.Millisecond)
		perSlot := map[time.Duration]int{}
		for i := range n {
			r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
		}
		for _, c := range r.store.called("acquire") {
			perSlot[time.Since(c.at)/(100*time.Millisecond)]++
		}
		for slot, calls := range perSlot {
			if calls > 25 {
				t.Errorf("%d of %d woke in one tenth of a second (%d)", calls, n, slot)
			}
		}
	})
}

// C47: neither hints nor errors make an entry ask faster than the shortest pause.
func TestNoEntryAsksFasterThanTheShortestPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		const n = 40
		for i := range n {
			r.store.plant(key(i), "there/b/1", time.Hour)
			r.Acquire(want(idOf(i, "a")))
		}
		for i := range 500 { // of 20 ms
			if i%25 == 0 { // the link flaps every half second
				f := pass
				if i%50 == 0 {
					f = cut
				}
				r.store.setFault(always(f))
			}
			for j := range n {
				r.store.hint(key(j))
			}
			if i%7 == 0 {
				r.store.missed()
				r.Acquire(want(idOf(i%n, "a")))
			}
			elapse(20 * time.Millisecond)
		}
		last := map[lock.Key]time.Time{}
		for _, c := range r.store.called("acquire") {
			if gap := c.at.Sub(last[c.keys[0]]); gap < 50*time.Millisecond {
				t.Fatalf("%s was asked for again after %s", c.keys[0], gap)
			}
			last[c.keys[0]] = c.at
		}
	})
}

func TestPausesGrowToTheCap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Hour)
		r.Acquire(want(idOf(1, "a")))
		elapse(5 * time.Minute)
		calls := r.store.called("acquire")
		pause := 50 * time.Millisecond
		for i := 1; i < len(calls); i++ {
			gap := calls[i].at.Sub(calls[i-1].at)
			if gap > 3*time.Second || i > 1 && i < 6 && (gap < pause*3/2 || gap > pause*2) {
				t.Fatalf("pause %d is %s after %s", i, gap, pause)
			}
			pause = gap
		}
		if n := len(calls); n < 100 || n > 150 {
			t.Fatalf("%d attempts in five minutes", n)
		}
		early := 0
		for i := 12; i < len(calls); i++ {
			if calls[i].at.Sub(calls[i-1].at) < 2900*time.Millisecond {
				early++
			}
		}
		if early < len(calls)/3 {
			t.Fatalf("%d of %d pauses are left to chance: those who wait long come in step", early, len(calls))
		}
	})
}

func TestAnOrderGivenAgainReplacesTheRequestAndKeepsThePace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", 2*time.Second)
		w := want(idOf(1, "a"))
		r.Acquire(w)
		elapse(time.Second)
		before := len(r.store.called("acquire"))
		w.Request.Floor = 77
		for range 100 {
			r.Acquire(w)
		}
		synctest.Wait()
		if n := len(r.store.called("acquire")); n != before {
			t.Fatalf("repeating the order sent %d requests", n-before)
		}
		elapse(5 * time.Second)
		if s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld); s.Acquired.Grant.FencingToken != 77 {
			t.Fatalf("fencing token %d, want the new floor", s.Acquired.Grant.FencingToken)
		}
	})
}

// C13: an answer that took longer than the ttl grants nothing.
func TestAGrantThatRanOutOnItsWayIsNotHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, func(o *keeper.Options) { o.CallTimeout = time.Minute })
		w := want(idOf(1, "a"))
		w.Request.TTL, w.Terms.TTL = time.Second, time.Second
		first := true
		r.store.setFault(func(c call) fault {
			if c.op == "acquire" && first {
				first = false
				return fault{reply: 995 * time.Millisecond}
			}
			return pass
		})
		r.Acquire(w)
		elapse(999 * time.Millisecond)
		s := r.mustBe(idOf(1, "a"), keeper.PhaseWaiting)
		if lock.ReasonOf(s.Err) != lock.ReasonNoReply {
			t.Fatalf("error %v", s.Err)
		}
		elapse(time.Second)
		if s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld); !s.Acquired.Grant.Valid(time.Now()) {
			t.Fatal("held without a valid grant")
		}
	})
}

func TestAContinuationThatSomebodyCameBetweenIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.plant(key(1), "there/b/1", time.Hour)
		r.store.remove(key(1))
		r.store.plant(key(1), "there/c/1", time.Hour)
		r.store.remove(key(1))
		w := want(idOf(1, "a"))
		w.Request.Since = 1
		r.Acquire(w)
		synctest.Wait()
		s := r.mustBe(idOf(1, "a"), keeper.PhaseLost)
		if !errors.Is(s.Err, lock.ErrLost) || s.Seen.State != lock.ViewFree {
			t.Fatalf("state %+v", s)
		}
		if n := len(r.observer.losses()); n != 0 {
			t.Fatalf("%d losses told: the loss was that of the tenure before", n)
		}
	})
}

func TestARequestThatTheStoreCannotServeIsNotRepeatedFast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.setFault(always(fault{err: lock.ErrUnsupported}))
		r.Acquire(want(idOf(1, "a")))
		elapse(30 * time.Second)
		if n := len(r.store.called("acquire")); n > 15 {
			t.Fatalf("%d attempts in 30 s", n)
		}
		if s := r.mustBe(idOf(1, "a"), keeper.PhaseWaiting); !errors.Is(s.Err, lock.ErrUnsupported) {
			t.Fatalf("error %v", s.Err)
		}
	})
}

// C53: an end that comes during a long pause is not waited out.
func TestCallingOffOrEndingDuringALongPauseTakesNoTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, func(o *keeper.Options) { o.Retry.Cap = 30 * time.Second })
		for n := range 2 {
			r.store.plant(key(n), "there/b/1", time.Hour)
			r.Acquire(want(idOf(n, "a")))
		}
		elapse(5 * time.Minute)
		began := time.Now()
		r.Abandon(idOf(0, "a"))
		synctest.Wait()
		r.mustBe(idOf(0, "a"), keeper.PhaseAbandoned)
		r.stop()
		if took := time.Since(began); took > time.Millisecond {
			t.Fatalf("took %s", took)
		}
	})
}
