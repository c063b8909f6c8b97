package keeper_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

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

func TestWhatDoesNotAnswerIsKeptApartFromWhatDoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 200
		r := newRig(t)
		for i := range n {
			r.hold(idOf(i, "a"))
		}
		r.store.setFault(func(c call) fault { return fault{hang: c.op == "renew" && c.has(key(7))} })
		elapse(100 * time.Second)
		tries, others := 0, 0
		for _, c := range r.store.called("renew") {
			if c.has(key(7)) {
				tries++
				others += len(c.keys) - 1
			}
		}
		if tries < 50 || others > tries {
			t.Fatalf("%d tries of the one that stalls took %d others along", tries, others)
		}
	})
}

func TestLocksThatAreAdoptedTogetherPartInTheFirstInterval(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 1000
		r := newRig(t)
		minute := keeper.Terms{TTL: time.Minute, RenewInterval: 10 * time.Second}
		for i := range n {
			id := idOf(i, "a")
			r.Adopt(r.store.plant(id.Key, id.Owner, time.Minute), minute)
		}
		synctest.Wait()
		r.store.forgetCalls()
		began := time.Now()
		elapse(10 * time.Second)
		perSecond := map[int]int{}
		for _, c := range r.store.called("renew") {
			perSecond[int(time.Since(began)/time.Second)-int(time.Since(c.at)/time.Second)] += len(c.keys)
		}
		for second, renewed := range perSecond {
			if renewed > n*3/10 {
				t.Errorf("%d of %d were renewed in second %d", renewed, n, second)
			}
		}
		if len(perSecond) < 5 {
			t.Errorf("renewed in %d seconds of ten", len(perSecond))
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
