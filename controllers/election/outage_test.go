package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/controllers/election"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// redis is a store of which only the health is known.
type redis struct {
	mu       sync.Mutex // guards the rest
	answered time.Time  // zero while it answers
	interval time.Duration
}

func (r *redis) Health() keeper.Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered.IsZero() {
		return keeper.Health{Answered: time.Now()}
	}
	return keeper.Health{Answered: r.answered, Since: r.answered, Err: errors.New("timeout")}
}

func (r *redis) States() []keeper.State {
	if r.interval == 0 {
		return nil
	}
	return []keeper.State{r.heldFor(2 * r.interval), r.heldFor(r.interval)}
}

// heldFor is a lock with that renewal interval and the ttl that goes with it by default.
func (r *redis) heldFor(interval time.Duration) keeper.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.answered
	if last.IsZero() {
		last = time.Now()
	}
	s := keeper.State{Phase: keeper.PhaseHeld, Terms: keeper.Terms{TTL: 6 * interval, RenewInterval: interval}}
	s.Acquired.Grant.ValidUntil = last.Add(s.Terms.TTL)
	return s
}

func (r *redis) stop()   { r.mu.Lock(); defer r.mu.Unlock(); r.answered = time.Now() }
func (r *redis) resume() { r.mu.Lock(); defer r.mu.Unlock(); r.answered = time.Time{} }

func watch(t *testing.T, c *candidate, stores map[string]election.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Watch(ctx, stores) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestADeciderStepsDownAfterOneAndAHalfRenewalIntervalsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ interval, low, high time.Duration }{
		"of the lock that is renewed most often":      {2 * time.Second, 3 * time.Second, 4 * time.Second},
		"of the default ttl where nothing is held":    {0, 15 * time.Second, 16 * time.Second},
		"of the default ttl where all are less often": {40 * time.Second, 15 * time.Second, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, near, far := &store{}, &redis{interval: tc.interval}, &redis{}
				a := start(t, s, "a")
				watch(t, a, map[string]election.Store{"default": near, "other": &redis{}})
				synctest.Wait()
				b := start(t, s, "b")
				watch(t, b, map[string]election.Store{"default": far})
				pass(time.Minute)
				near.stop()
				between(t, "stepping down", until(t, time.Minute, func() bool { return !a.Deciding() }), tc.low, tc.high)
				between(t, "the takeover", until(t, time.Minute, b.Deciding), 0, time.Second)
				near.resume()
				pass(time.Minute)
				if a.Deciding() || !b.Deciding() {
					t.Errorf("a decides: %t, b decides: %t", a.Deciding(), b.Deciding())
				}
			})
		})
	}
}

func TestAStoreThatNeverAnsweredIsGivenTimeFromTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &redis{answered: time.Unix(1, 0)}
		a := start(t, &store{}, "a")
		synctest.Wait()
		watch(t, a, map[string]election.Store{"default": r})
		between(t, "stepping down", until(t, time.Minute, func() bool { return !a.Deciding() }), 15*time.Second, 16*time.Second)
		between(t, "the pause", until(t, time.Minute, a.Deciding), 2*time.Second, 3*time.Second)
		pass(time.Minute)
		if !a.Deciding() {
			t.Error("a stepped down a second time in one outage")
		}
		r.resume()
		pass(time.Second)
		r.stop()
		between(t, "stepping down again", until(t, time.Minute, func() bool { return !a.Deciding() }), 15*time.Second, 16*time.Second)
	})
}

// A lock whose ttl leaves no time to hand the Lease over and back must be fenced by this replica, if it
// comes to that: while nobody decides, nobody is stopped.
func TestAReplicaStaysWhereAShortLockLeavesNoTimeForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &redis{interval: time.Second}
		a := start(t, &store{}, "a")
		synctest.Wait()
		watch(t, a, map[string]election.Store{"default": r})
		r.stop()
		pass(time.Minute)
		if !a.Deciding() {
			t.Error("a stepped down")
		}
	})
}
