package keeper_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestHealthIsFreshWhereNothingIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		if h := r.Health(); !h.RoundDone || h.Answered != time.Now() {
			t.Fatalf("health %+v", h)
		}
		elapse(10 * time.Second)
		r.store.setFault(always(cut))
		elapse(10 * time.Second)
		h := r.Health()
		if !errors.Is(h.Err, lock.ErrUnknown) || time.Since(h.Since) < 8*time.Second || time.Since(h.Answered) < 10*time.Second {
			t.Fatalf("health %+v", h)
		}
		r.store.setFault(always(pass))
		elapse(2 * time.Second)
		if h := r.Health(); h.Err != nil || !h.Since.IsZero() {
			t.Fatalf("health %+v", h)
		}
	})
}

func TestAStoreThatIsInUseIsNotProbed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.hold(idOf(1, "a"))
		before := len(r.store.called("inspect"))
		elapse(time.Minute)
		if n := len(r.store.called("inspect")) - before; n > 0 {
			t.Fatalf("%d probes", n)
		}
	})
}

func TestTheRoundIsDoneOnlyOnceAllAdoptedWereAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.setFault(func(c call) fault {
			if c.op == "renew" && c.has(key(1)) {
				return cut
			}
			return pass
		})
		ids := []keeper.ID{idOf(0, "a"), idOf(1, "a"), idOf(2, "a")}
		for _, id := range ids[:2] {
			r.Adopt(r.store.plant(id.Key, id.Owner, time.Hour), terms)
		}
		r.Adopt(lock.Grant{Key: ids[2].Key, Owner: ids[2].Owner, Token: "gone"}, terms) // lost: answered as well
		elapse(time.Minute)
		if r.Health().RoundDone {
			t.Fatal("done without an answer for one of them")
		}
		r.store.setFault(always(pass))
		elapse(time.Second)
		if !r.Health().RoundDone {
			t.Fatal("not done after all were answered")
		}
		r.mustBe(ids[2], keeper.PhaseLost)
	})
}

func TestAStragglerDoesNotMakeAHealthyStoreLookIll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.store.setFault(func(c call) fault { return fault{hang: c.has(key(1))} })
		r.Acquire(want(idOf(1, "a")))
		elapse(50 * time.Millisecond)
		for i := range 30 {
			r.Acquire(want(idOf(10+i, "a")))
			elapse(100 * time.Millisecond)
			if h := r.Health(); h.Err != nil {
				t.Fatalf("health %+v", h)
			}
		}
		if s := r.mustBe(idOf(1, "a"), keeper.PhaseWaiting); s.Err == nil {
			t.Fatal("there was no straggler")
		}
	})
}

func TestOptionsAreRefusedWithAllTheirProblems(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		mod      func(*keeper.Options)
		problems int
	}{
		"defaults":   {func(*keeper.Options) {}, 0},
		"no backend": {func(o *keeper.Options) { o.Backend = nil }, 1},
		"one batch":  {func(o *keeper.Options) { o.Batches = 1 }, 1},
		"all negative": {func(o *keeper.Options) {
			o.Batches, o.BatchSize, o.Calls, o.Tick, o.CallTimeout, o.CloseTimeout, o.ProbeEvery = -1, -1, -1, -1, -1, -1, -1
		}, 7},
		"no growth":      {func(o *keeper.Options) { o.Retry.MinFactor, o.Retry.MaxFactor = 1, 1 }, 1},
		"cap too low":    {func(o *keeper.Options) { o.Retry.Cap = time.Millisecond }, 1},
		"busy loop":      {func(o *keeper.Options) { o.Retry.Initial = time.Microsecond }, 1},
		"bad probe key":  {func(o *keeper.Options) { o.ProbeKey.Name = "\xff" }, 1},
		"long first try": {func(o *keeper.Options) { o.Retry.Initial = time.Minute }, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := keeper.Options{Backend: newStore()}
			c.mod(&o)
			_, err := keeper.New(o)
			var joined interface{ Unwrap() []error }
			n := 0
			if errors.As(err, &joined) {
				n = len(joined.Unwrap())
			}
			if n != c.problems || (err == nil) != (c.problems == 0) {
				t.Fatalf("%d problems, want %d: %v", n, c.problems, err)
			}
		})
	}
}

// A backend that does not return although its context has ended breaks the contract. It must not
// make grants look well that nobody renews.
func TestARenewalThatNeverReturnsIsAMissingAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		stuck := make(chan struct{})
		s := newStore()
		r := newRig(t, func(o *keeper.Options) {
			o.Backend, o.Batches, o.BatchSize = &stubborn{store: s, until: stuck}, 2, 1
		})
		r.store = s
		release := sync.OnceFunc(func() { close(stuck) })
		t.Cleanup(release)
		for i := range 5 {
			r.hold(idOf(i, "a"))
		}
		r.drain()
		elapse(5 * time.Second)
		for i := range 5 {
			st := r.mustBe(idOf(i, "a"), keeper.PhaseHeld)
			if !errors.Is(st.Err, lock.ErrUnknown) || st.ErrSince.IsZero() || lock.ReasonOf(st.Err) != lock.ReasonTimeout {
				t.Fatalf("state %+v", st)
			}
		}
		if n := len(r.drain()); n != 5 {
			t.Fatalf("%d events", n)
		}
		release()
		elapse(time.Second)
		for i := range 5 {
			if st := r.mustBe(idOf(i, "a"), keeper.PhaseHeld); st.Err != nil {
				t.Fatalf("error %v", st.Err)
			}
		}
	})
}
