package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

const (
	// blindLook is how often the age of the last word from the API server is looked at, and a lock
	// that was given up for that reason looked at again.
	blindLook = 10 * time.Second
)

// errBlind ends a pass over a lock whose holder nobody can vouch for any more.
var errBlind = errors.New("the API server has been away for too long to keep renewing")

// blind reports whether the API server has been away for so long. What a status says of a holder
// that had not started is worth less: it may never have, so only the start deadline counts.
func (r *Reconciler) blind(now time.Time, st plan.Status, startDeadline time.Duration) bool {
	bound := r.opts.MaxBlindRenew
	if st.StartedAt.IsZero() {
		bound = min(bound, startDeadline)
	}
	return now.Sub(r.opts.APISeen()) > bound
}

// Blindness is a runnable that wakes every lock while the API server is away, since no watch does.
func (r *Reconciler) Blindness(wake chan<- struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(blindLook)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				if r.now().Sub(r.opts.APISeen()) > blindLook*2 {
					select {
					case wake <- struct{}{}:
					default:
					}
				}
			}
		}
	}
}
