package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// Only the store's plain word that a grant is lost ends it. Anything else a backend may come up
// with is a missing answer.
func TestOnlyAPlainLossEndsAGrant(t *testing.T) {
	cases := map[string]struct {
		err    error
		phase  keeper.Phase
		reason lock.Reason
	}{
		"lost":                  {lock.ErrLost, keeper.PhaseLost, lock.ReasonOther},
		"lost, with a reason":   {fmt.Errorf("renew: %w", &lock.LostError{Key: key(1)}), keeper.PhaseLost, lock.ReasonOther},
		"partly lost":           {errors.Join(lock.ErrLost, errCut), keeper.PhaseHeld, lock.ReasonUnreachable},
		"held":                  {lock.ErrHeld, keeper.PhaseHeld, lock.ReasonOther},
		"invalid":               {lock.ErrInvalid, keeper.PhaseHeld, lock.ReasonOther},
		"not classified":        {errors.New("boom"), keeper.PhaseHeld, lock.ReasonOther},
		"a context's own error": {context.DeadlineExceeded, keeper.PhaseHeld, lock.ReasonTimeout},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t)
				r.hold(idOf(1, "a"))
				r.store.setFault(always(fault{err: c.err}))
				elapse(terms.RenewInterval)
				s := r.mustBe(idOf(1, "a"), c.phase)
				if c.phase == keeper.PhaseHeld && (!errors.Is(s.Err, lock.ErrUnknown) || s.ErrSince.IsZero() || errors.Is(s.Err, lock.ErrHeld)) {
					t.Fatalf("error %v", s.Err)
				}
				if got := lock.ReasonOf(s.Err); got != c.reason {
					t.Fatalf("reason %s, want %s", got, c.reason)
				}
			})
		})
	}
}

func TestAPanicIsToldApartFromAnotherLoss(t *testing.T) {
	t.Parallel()
	err := error(&keeper.PanicError{Key: key(1), Value: "nil entry"})
	if !errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrUnknown) || !strings.Contains(err.Error(), "panic: nil entry") {
		t.Fatal(err)
	}
}

// notifying is a store whose hints fail in a way of the test's choice.
type notifying struct {
	*store
	tries  []time.Time
	notify func(ctx context.Context, try int) error
}

func (n *notifying) Notify(ctx context.Context, _ func(lock.Key), _ func()) error {
	n.tries = append(n.tries, time.Now())
	return n.notify(ctx, len(n.tries))
}

func TestHintsThatFailAreTriedAgainInPeace(t *testing.T) {
	cases := map[string]struct {
		notify      func(context.Context, int) error
		least, most int
	}{
		"not supported": {func(context.Context, int) error { return lock.ErrUnsupported }, 1, 1},
		"cut":           {func(context.Context, int) error { return errCut }, 20, 35},
		"a panic":       {func(context.Context, int) error { panic("boom") }, 20, 35},
		"ends at once":  {func(context.Context, int) error { return nil }, 20, 35},
		"good for a while": {func(ctx context.Context, _ int) error {
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			return errCut
		}, 5, 7},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := &notifying{store: newStore(), notify: c.notify}
				r := newRig(t, func(o *keeper.Options) { o.Backend = b })
				r.Acquire(want(idOf(1, "a")))
				elapse(time.Minute)
				r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
				r.stop()
				synctest.Wait()
				if n := len(b.tries); n < c.least || n > c.most {
					t.Fatalf("%d tries in a minute, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}
