package keeper

import (
	"context"
	"time"
)

// spreadAtCap is the share of the longest pause that is left to chance, so that those who have
// reached it do not come in step.
const spreadAtCap = 0.25

// longer is the pause after one of length p, which is zero for the first.
func (r Retry) longer(p time.Duration, random func() float64) time.Duration {
	if p == 0 {
		return r.Initial
	}
	factor := r.MinFactor + (r.MaxFactor-r.MinFactor)*random()
	return min(time.Duration(float64(p)*factor), r.Cap)
}

// spread is the pause that is taken where p is what the row of pauses has come to.
func (r Retry) spread(p time.Duration, random func() float64) time.Duration {
	if p < r.Cap {
		return p
	}
	return max(r.Initial, time.Duration(float64(p)*(1-spreadAtCap*random())))
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
