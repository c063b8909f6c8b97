package election

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/conch-dev/conch/pkg/lock/keeper"
)

const (
	// idleInterval stands for the renewal interval where nothing is held: that of the default ttl.
	idleInterval = 10 * time.Second
	// looksPerRetry is how often the stores are looked at within one RetryPeriod.
	looksPerRetry = 4
)

// Store is what a keeper tells about its store.
type Store interface {
	Health() keeper.Health
	States() []keeper.State
}

// Watch makes this replica step down once it decides and one of its stores has not answered for one
// and a half renewal intervals of the most frequently renewed lock, so that a replica that can reach
// the store decides before anything has to be fenced. It returns when ctx ends.
func (e *Election) Watch(ctx context.Context, stores map[string]Store) error {
	log := logr.FromContextOrDiscard(ctx).WithName("election")
	begin := e.now()
	tick := time.NewTicker(e.opts.RetryPeriod / looksPerRetry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		backend, silent := silentStore(stores, begin, e.now())
		switch {
		case backend == "":
			e.Answered()
		case silent && e.leisurely(stores) && e.StepDown():
			log.Info("Stepped down: the backend does not answer this replica", "backend", backend)
		}
	}
}

// leisurely reports whether every grant lasts long enough for the Lease to be away and back. A lock
// whose ttl is too short for that is better fenced in time by this replica, if it comes to that.
func (e *Election) leisurely(stores map[string]Store) bool {
	back := e.now().Add(e.opts.RetryPeriod)
	for _, s := range stores {
		for _, st := range s.States() {
			g := st.Acquired.Grant
			if st.Phase == keeper.PhaseHeld && !g.ValidUntil.IsZero() && g.ValidUntil.Sub(back) < st.Terms.TTL*2/5 {
				return false
			}
		}
	}
	return true
}

// silentStore names a store with errors, if there is one, and tells whether its silence has lasted
// long enough to step down.
func silentStore(stores map[string]Store, begin, now time.Time) (name string, silent bool) {
	for n, s := range stores {
		h := s.Health()
		if h.Err == nil {
			continue
		}
		since := h.Answered
		if since.Before(begin) {
			since = begin
		}
		name = n
		if now.Sub(since) >= shortestInterval(s.States())*3/2 {
			return n, true
		}
	}
	return name, false
}

func shortestInterval(states []keeper.State) time.Duration {
	shortest := idleInterval
	for _, s := range states {
		if s.Phase == keeper.PhaseHeld && s.Terms.RenewInterval > 0 {
			shortest = min(shortest, s.Terms.RenewInterval)
		}
	}
	return shortest
}
