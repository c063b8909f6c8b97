package identity

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	// DefaultEvery is how often the stores are looked at. It is one small request for each store and
	// cluster, from the decider only.
	DefaultEvery = 3 * time.Second
	// calm is how many looks in a row our name must have stood for a conflict to be over. The other
	// side writes at each of its looks, so one more than one is enough; three allow for slow ones.
	calm = 3
	// looksPerEvery is how soon a verdict that is not settled yet is looked at again.
	looksPerEvery = 3
)

// Election tells whether this replica decides, and how surely.
type Election interface {
	Deciding() bool
	Epoch() int64
	// Confirmed is when the newest write of the Lease that succeeded was sent.
	Confirmed() time.Time
	// Deciders are the names of this cluster's own newest deciders.
	Deciders() []string
	Changed() <-chan struct{}
}

// Options are everything that a Guard needs.
type Options struct {
	// Stores are where clusters could meet, by the name of the backend.
	Stores   map[string]lock.Announcer
	Election Election
	// Cluster is the identity to guard, and Name this process's identity in the election.
	Cluster, Name string
	// Every is how often to look; DefaultEvery if zero.
	Every time.Duration
}

// Validate reports everything that is missing.
func (o Options) Validate() error {
	var problems []error
	if o.Election == nil {
		problems = append(problems, errors.New("identity: an election is missing"))
	}
	if o.Cluster == "" || o.Name == "" {
		problems = append(problems, errors.New("identity: the cluster's identity or the process's name is missing"))
	}
	return errors.Join(problems...)
}

// Guard watches over one cluster's identity.
type Guard struct {
	opts    Options
	changed <-chan struct{}

	mu          sync.Mutex // guards the rest
	conflicts   map[string]string
	subscribers []chan struct{}
}

// New returns a Guard that Run has to drive, or every problem of its options.
func New(o Options) (*Guard, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	return &Guard{opts: o, changed: o.Election.Changed(), conflicts: map[string]string{}}, nil
}

// Conflict reports whether another cluster uses this identity. It is false on a replica that does
// not decide.
func (g *Guard) Conflict() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conflicts) > 0
}

func (g *Guard) conflictIn(backend string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conflicts[backend] != ""
}

// Rival names the other decider and the backend in which it was met, empty without a conflict.
func (g *Guard) Rival() (backend, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for b, n := range g.conflicts {
		if backend == "" || b < backend {
			backend, name = b, n
		}
	}
	return backend, name
}

// Changed returns a channel of its own for each caller, which gets a value whenever Conflict may
// have changed. Values that nobody took merge into one.
func (g *Guard) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	ch := make(chan struct{}, 1)
	g.subscribers = append(g.subscribers, ch)
	return ch
}

// Run looks at the stores until ctx ends. A store that does not answer holds up no other one.
func (g *Guard) Run(ctx context.Context) error {
	var all sync.WaitGroup
	wakes := make([]chan struct{}, 0, len(g.opts.Stores))
	for backend, store := range g.opts.Stores {
		w := &watch{g: g, backend: backend, store: store, log: logr.FromContextOrDiscard(ctx).WithName("identity").WithValues("backend", backend)}
		wake := make(chan struct{}, 1)
		wakes = append(wakes, wake)
		all.Go(func() { w.run(ctx, wake) })
	}
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.changed:
			for _, wake := range wakes {
				signal(wake)
			}
		}
	}
}

// set records what a look at one store has found; rival is empty where all is well.
func (g *Guard) set(backend, rival string) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conflicts[backend] == rival {
		return false
	}
	was := len(g.conflicts) > 0
	if rival == "" {
		delete(g.conflicts, backend)
	} else {
		g.conflicts[backend] = rival
	}
	if was != (len(g.conflicts) > 0) {
		for _, ch := range g.subscribers {
			signal(ch)
		}
	}
	return true
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// known reports whether a name is that of one of our own predecessors.
func (g *Guard) known(name string) bool { return slices.Contains(g.opts.Election.Deciders(), name) }
