package keeper_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestAHeldGrantIsRenewedWithinEachInterval(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		elapse(5 * time.Minute)
		calls := r.store.called("renew")
		for i := 1; i < len(calls); i++ {
			gap := calls[i].at.Sub(calls[i-1].at)
			if gap > terms.RenewInterval || gap < terms.RenewInterval*8/10 {
				t.Fatalf("renewed after %s, want between 80 and 100 %% of %s", gap, terms.RenewInterval)
			}
		}
		s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
		if s.RenewedAt != calls[len(calls)-1].at || s.Acquired.Grant.ValidUntil != lock.ValidUntil(s.RenewedAt, ttl) {
			t.Fatalf("state %+v", s)
		}
	})
}

// C15: many locks of a short ttl over a slow link.
func TestFiveHundredLocksOverASlowLinkNeverRunLow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n, short = 500, 6 * time.Second
		r := newRig(t)
		random := rand.New(rand.NewPCG(3, 4))
		r.store.setFault(func(call) fault {
			trip := 50*time.Millisecond + time.Duration(random.Int64N(int64(250*time.Millisecond)))
			return fault{delay: trip / 2, reply: trip / 2}
		})
		for i := range n {
			w := want(idOf(i, "a"))
			w.Request.TTL, w.Terms = short, keeper.Terms{TTL: short, RenewInterval: short / 6}
			r.Acquire(w)
		}
		elapse(5 * time.Second)
		for range 60 {
			elapse(time.Second)
			for i := range n {
				left := time.Until(r.mustBe(idOf(i, "a"), keeper.PhaseHeld).Acquired.Grant.ValidUntil)
				if left < short/3 || r.store.remaining(key(i)) < short/3 {
					t.Fatalf("%s has %s left", key(i), left)
				}
			}
		}
	})
}

// C25: a glitch of a second at any one tick costs nothing.
func TestACutAtAnyTickIsSurvived(t *testing.T) {
	for tick := range 8 {
		t.Run(fmt.Sprint(tick), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t)
				r.hold(idOf(1, "a"))
				ticks := 0
				var until time.Time
				r.store.setFault(func(c call) fault {
					if c.op == "renew" {
						if ticks++; ticks == tick+1 {
							until = time.Now().Add(time.Second)
						}
					}
					if time.Now().Before(until) {
						return cut
					}
					return pass
				})
				for range 200 {
					elapse(100 * time.Millisecond)
					s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
					if left := time.Until(s.Acquired.Grant.ValidUntil); left < ttl/2 {
						t.Fatalf("%s left", left)
					}
				}
				if until.IsZero() {
					t.Fatal("there was no cut")
				}
			})
		})
	}
}

// C17: after a cut that cost all locks, the same keeper gets them again and renews them.
func TestLocksThatWereLostInACutAreKeptAgainAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 20
		r := newRig(t)
		for i := range n {
			r.hold(idOf(i, "a"))
		}
		r.store.setFault(always(cut))
		elapse(ttl + 2*time.Second)
		for i := range n {
			s := r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
			if s.Acquired.Grant.Valid(time.Now()) || !errors.Is(s.Err, lock.ErrUnknown) || s.ErrSince.IsZero() {
				t.Fatalf("a cut is no loss, but the grant has run out: %+v", s)
			}
		}
		r.store.setFault(always(pass))
		elapse(terms.RenewInterval)
		for i := range n {
			if s := r.mustBe(idOf(i, "a"), keeper.PhaseLost); s.Seen.State != lock.ViewFree {
				t.Fatalf("seen %+v", s.Seen)
			}
			r.Acquire(want(idOf(i, "again")))
		}
		for range 50 {
			elapse(ttl / 10)
			for i := range n {
				r.mustBe(idOf(i, "again"), keeper.PhaseHeld)
				if left := r.store.remaining(key(i)); left < ttl/2 {
					t.Fatalf("%s has %s left", key(i), left)
				}
			}
		}
	})
}

// C29, the keeper's side: the grant ends on time without the store, and the successor is named.
func TestAHolderThatIsCutOffSeesItsGrantEndAndThenWhoHasIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		elapse(20 * time.Second)
		r.store.setFault(always(cut))
		elapse(ttl)
		s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
		if s.Acquired.Grant.Valid(time.Now()) || time.Since(s.ErrSince) < ttl-terms.RenewInterval {
			t.Fatalf("state %+v", s)
		}
		if r.store.remaining(key(1)) > 0 {
			t.Fatal("the store's lease outlived its ttl")
		}
		r.store.plant(key(1), "there/b/1", time.Hour)
		elapse(ttl)
		r.store.setFault(always(pass))
		elapse(terms.RenewInterval / 2)
		s = r.mustBe(idOf(1, "a"), keeper.PhaseLost)
		if s.Seen.Owner != "there/b/1" || s.Acquired.Grant.Token == "" {
			t.Fatalf("state %+v", s)
		}
		if n := len(r.observer.losses()); n != 1 {
			t.Fatalf("%d losses told", n)
		}
	})
}

func TestALateRenewalRevivesAGrantThatTheStoreStillHas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		r.store.setFault(func(c call) fault { return fault{lose: c.op == "renew"} }) // it acts, and nobody hears
		elapse(3 * ttl)
		if s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld); s.Acquired.Grant.Valid(time.Now()) {
			t.Fatal("valid without an answer")
		}
		r.store.setFault(always(pass))
		elapse(terms.RenewInterval / 2)
		s := r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
		if !s.Acquired.Grant.Valid(time.Now()) || s.Err != nil || !s.ErrSince.IsZero() {
			t.Fatalf("state %+v", s)
		}
	})
}

func TestAnAdoptedGrantIsRenewedAtOnceAndThenOnSchedule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		elapse(time.Second)
		id := idOf(1, "a")
		g := r.store.plant(id.Key, id.Owner, 3*time.Second)
		r.Adopt(g, terms)
		s := r.mustBe(id, keeper.PhaseHeld)
		if !s.Acquired.Grant.ValidUntil.IsZero() || r.Health().RoundDone {
			t.Fatalf("confirmed before any answer: %+v", s)
		}
		synctest.Wait()
		if !r.Health().RoundDone {
			t.Fatal("the round is not done after the answer")
		}
		r.Adopt(g, keeper.Terms{TTL: time.Hour}) // once more changes nothing
		if s := r.mustBe(id, keeper.PhaseHeld); s.Terms != terms || !s.Acquired.Grant.Valid(time.Now()) || !s.GrantedAt.IsZero() {
			t.Fatalf("state %+v", s)
		}
		elapse(time.Minute)
		if left := r.store.remaining(id.Key); left < ttl/2 {
			t.Fatalf("%s left", left)
		}
	})
}

func TestALongerTTLIsSentAtOnceAndAShorterOneIsHonouredHereFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		long, short := keeper.Terms{TTL: time.Hour}, keeper.Terms{TTL: 5 * time.Second}
		r.Retime(id, long, false)
		synctest.Wait()
		if left := r.store.remaining(id.Key); left != time.Hour {
			t.Fatalf("the store has %s left", left)
		}
		if s := r.mustBe(id, keeper.PhaseHeld); s.Terms.RenewInterval != 10*time.Minute {
			t.Fatalf("terms %+v", s.Terms)
		}

		r.store.setFault(always(cut))
		r.Retime(id, short, true)
		if left := time.Until(r.mustBe(id, keeper.PhaseHeld).Acquired.Grant.ValidUntil); left > 5*time.Second {
			t.Fatalf("%s left here, although the store may have been shortened", left)
		}
		elapse(4 * time.Second)
		r.store.setFault(always(pass))
		elapse(short.TTL / 12)
		if left := r.store.remaining(id.Key); left > 5*time.Second || left < 4*time.Second {
			t.Fatalf("the store has %s left", left)
		}
		before := len(r.store.called("renew"))
		for range 100 {
			r.Retime(id, short, true)
		}
		synctest.Wait()
		if n := len(r.store.called("renew")); n != before {
			t.Fatalf("repeating the order sent %d renewals", n-before)
		}
		elapse(time.Minute)
		for _, c := range r.store.called("renew")[before:] {
			if c.renewed[0].Shorten {
				t.Fatal("still shortening after the store has answered")
			}
		}
		r.mustBe(id, keeper.PhaseHeld)
	})
}

func TestARenewalThatWasUnderWayDoesNotUndoAShorterTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.Acquire(keeper.Want{Request: lock.Request{Key: id.Key, Owner: id.Owner, TTL: time.Minute}})
		synctest.Wait()
		r.store.setFault(func(c call) fault {
			if c.op == "renew" && !c.renewed[0].Shorten {
				return fault{reply: 500 * time.Millisecond}
			}
			return fault{hang: c.op == "renew"}
		})
		for len(r.store.called("renew")) == 0 {
			elapse(100 * time.Millisecond)
		}
		r.Retime(id, keeper.Terms{TTL: 10 * time.Second}, true)
		elapse(600 * time.Millisecond)
		if left := time.Until(r.mustBe(id, keeper.PhaseHeld).Acquired.Grant.ValidUntil); left > 10*time.Second {
			t.Fatalf("%s left", left)
		}
	})
}

func TestTermsThatChangeWhileWaitingHoldForTheGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(always(fault{reply: 200 * time.Millisecond}))
		r.Acquire(want(id))
		elapse(100 * time.Millisecond)
		r.Retime(id, keeper.Terms{TTL: time.Minute}, false)
		elapse(500 * time.Millisecond)
		if s := r.mustBe(id, keeper.PhaseHeld); s.Acquired.Grant.TTL != time.Minute || r.store.remaining(id.Key) < 59*time.Second {
			t.Fatalf("state %+v", s)
		}
	})
}

func TestABatchThatStallsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 100
		r := newRig(t, func(o *keeper.Options) { o.BatchSize = 10; o.Batches = 2 })
		for i := range n {
			r.hold(idOf(i, "a"))
		}
		r.store.setFault(func(c call) fault { return fault{hang: c.op == "renew" && c.has(key(7))} })
		for range 100 {
			elapse(500 * time.Millisecond)
			stalled := 0
			for i := range n {
				s := r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
				if left := time.Until(s.Acquired.Grant.ValidUntil); left < ttl/3 {
					stalled++
				}
			}
			if stalled > 1 {
				t.Fatalf("%d locks run low because of one", stalled)
			}
		}
		if r.mustBe(idOf(7, "a"), keeper.PhaseHeld).Acquired.Grant.Valid(time.Now()) {
			t.Fatal("nothing stalled")
		}
	})
}

func TestAcquiresAndReleasesThatHangDoNotDelayRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 50 {
			r.hold(idOf(i, "a"))
		}
		r.store.setFault(func(c call) fault { return fault{hang: c.op == "acquire" || c.op == "release"} })
		for i := range 200 {
			r.Acquire(want(idOf(100+i, "a")))
		}
		for i := range 25 {
			r.Release(idOf(i, "a"), lock.Leave{})
		}
		elapse(time.Minute)
		for i := 25; i < 50; i++ {
			s := r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
			if left := time.Until(s.Acquired.Grant.ValidUntil); left < ttl*2/3 {
				t.Fatalf("%s left", left)
			}
		}
		if r.observer.late > 0 {
			t.Fatalf("renewed %s late", r.observer.late)
		}
	})
}

func TestTheMostEndangeredGrantsGoFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 100
		r := newIdleRig(t, func(o *keeper.Options) { o.BatchSize = 10 })
		for _, i := range rand.Perm(n) {
			g := r.store.plant(key(i), idOf(i, "a").Owner, time.Minute)
			g.ValidUntil = time.Now().Add(time.Duration(i) * time.Second)
			r.Adopt(g, terms)
		}
		r.start()
		calls := r.store.called("renew")
		if len(calls) != n/10 {
			t.Fatalf("%d calls for %d locks", len(calls), n)
		}
		// Calls run side by side, so only what is within one is in order, and which goes with which.
		for _, c := range calls {
			for i, x := range c.renewed[1:] {
				if c.renewed[i].Grant.ValidUntil.Add(time.Second) != x.Grant.ValidUntil {
					t.Fatalf("a batch has %s and then %s", c.renewed[i].Grant.Key, x.Grant.Key)
				}
			}
		}
	})
}

func TestWhatIsDueWithinATickGoesAlong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 2000
		r := newRig(t)
		for i := range n {
			r.Acquire(want(idOf(i, "a")))
		}
		elapse(10 * time.Second)
		r.store.forgetCalls()
		elapse(10 * time.Second)
		calls := r.store.called("renew")
		if perSecond := len(calls) / 10; perSecond > 25 {
			t.Fatalf("%d calls a second for %d locks", perSecond, n)
		}
		for _, c := range calls {
			if len(c.renewed) > 250 {
				t.Fatalf("a batch of %d", len(c.renewed))
			}
		}
	})
}

func TestABackendThatAnswersTooLittleLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStore()
		r := newRig(t, func(o *keeper.Options) { o.Backend = mute{s} })
		id := idOf(1, "a")
		r.Adopt(s.plant(id.Key, id.Owner, time.Minute), terms)
		elapse(10 * time.Second)
		if st := r.mustBe(id, keeper.PhaseHeld); !errors.Is(st.Err, lock.ErrUnknown) {
			t.Fatalf("error %v", st.Err)
		}
	})
}
