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

func TestRetriesAreFastAfterEveryOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		for round := range 3 {
			r.store.setFault(always(pass))
			elapse(20 * time.Second)
			r.store.forgetCalls()
			r.store.setFault(always(cut))
			elapse(2500 * time.Millisecond) // an interval, and a second
			if n := len(r.store.called("renew")); n < 5 {
				t.Fatalf("%d tries in outage %d", n, round)
			}
		}
	})
}
