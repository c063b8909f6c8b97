package keeper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

const ttl = 9 * time.Second

var terms = keeper.Terms{TTL: ttl, RenewInterval: ttl / 6}

// rig is a keeper that runs over a store, in a bubble of time.
type rig struct {
	*keeper.Keeper
	t        *testing.T
	store    *store
	observer *observer
	stop     func()
}

// inBubble runs a test where time passes only while everybody waits.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func newRig(t *testing.T, mods ...func(*keeper.Options)) *rig {
	t.Helper()
	r := newIdleRig(t, mods...)
	r.start()
	return r
}

// newIdleRig is a rig whose keeper does not run yet.
func newIdleRig(t *testing.T, mods ...func(*keeper.Options)) *rig {
	t.Helper()
	s, o := newStore(), &observer{}
	random := rand.New(rand.NewPCG(1, 2))
	opts := keeper.Options{Backend: s, Observer: o, Random: random.Float64}
	for _, mod := range mods {
		mod(&opts)
	}
	k, err := keeper.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Keeper: k, t: t, store: s, observer: o, stop: func() {}}
}

func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.t.Cleanup(func() {
		r.stop()
		if o := r.store.overlaps(); len(o) > 0 {
			r.t.Errorf("two exclusive calls at once for %v", o)
		}
	})
	synctest.Wait()
}

// elapse lets time pass until everybody waits again.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func key(n int) lock.Key { return lock.Key{Name: fmt.Sprintf("key-%d", n)} }

func idOf(n int, owner string) keeper.ID {
	return keeper.ID{Key: key(n), Owner: lock.NewOwner("here/"+owner, "nonce")}
}

func want(id keeper.ID) keeper.Want {
	return keeper.Want{Request: lock.Request{Key: id.Key, Owner: id.Owner, TTL: terms.TTL}, Terms: terms}
}

// hold acquires a key and waits until it is held.
func (r *rig) hold(id keeper.ID) keeper.State {
	r.t.Helper()
	r.Acquire(want(id))
	synctest.Wait()
	return r.mustBe(id, keeper.PhaseHeld)
}

func (r *rig) mustBe(id keeper.ID, phase keeper.Phase) keeper.State {
	r.t.Helper()
	s, ok := r.State(id)
	if !ok || s.Phase != phase {
		r.t.Fatalf("%s %s: phase %q (known: %t, error: %v), want %q", id.Key, id.Owner, s.Phase, ok, s.Err, phase)
	}
	return s
}

// drain reads what events there are now.
func (r *rig) drain() []keeper.Event {
	var all []keeper.Event
	for {
		synctest.Wait()
		select {
		case e, ok := <-r.Events():
			if !ok {
				return all
			}
			all = append(all, e)
		default:
			return all
		}
	}
}

// observer remembers what it was told.
type observer struct {
	mu       sync.Mutex
	requests map[string]int
	late     time.Duration
	panicked []lock.Key
	lost     []lock.Key
	holding  int
	panics   bool
}

func (o *observer) note(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	if o.panics {
		panic("observer")
	}
}

func (o *observer) Requested(op string, _ time.Duration, _ error) {
	o.note(func() {
		if o.requests == nil {
			o.requests = map[string]int{}
		}
		o.requests[op]++
	})
}

func (o *observer) RenewedLate(d time.Duration) { o.note(func() { o.late = max(o.late, d) }) }
func (o *observer) Panicked(k lock.Key)         { o.note(func() { o.panicked = append(o.panicked, k) }) }
func (o *observer) Lost(k lock.Key, _ error)    { o.note(func() { o.lost = append(o.lost, k) }) }
func (o *observer) Holding(n int)               { o.note(func() { o.holding = n }) }

func (o *observer) losses() []lock.Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]lock.Key(nil), o.lost...)
}
