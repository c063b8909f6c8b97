package keeper

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Defaults of Options.
const (
	// A waiter that is refused comes back soon at first, since most locks are held briefly, and
	// then at a pace that thousands of waiters may keep up.
	defaultRetryInitial   = 50 * time.Millisecond
	defaultRetryMinFactor = 1.5
	defaultRetryMaxFactor = 2.0
	defaultRetryCap       = 3 * time.Second
	// Redis runs a batch of this many in well under a millisecond.
	defaultBatchSize = 250
	// Two would do where the store is near; more keep the pace up over a slow link.
	defaultBatches = 8
	defaultCalls   = 32
	// What is due within a tick rides along with what is due now.
	defaultTick        = 50 * time.Millisecond
	defaultCallTimeout = 2 * time.Second
	// A process that is told to end has about this long before it is killed for being slow.
	defaultCloseTimeout = time.Second
	defaultProbeEvery   = 2 * time.Second
	defaultProbeName    = "conch-probe"
)

// Retry is the pause between two attempts of one entry: Initial, then longer by a random factor
// each time, up to Cap.
type Retry struct {
	Initial   time.Duration
	MinFactor float64
	MaxFactor float64
	Cap       time.Duration
}

// Options configure a Keeper. Only Backend is required; what is zero gets a default.
type Options struct {
	Backend lock.Backend
	// Observer is told what happens. Default: lock.Silent.
	Observer lock.Observer
	// Retry paces acquires, and releases and abandons without an answer. Default: 50ms, then 1.5 to
	// 2.0 times as long, up to 3s.
	Retry Retry
	// BatchSize is how many grants are renewed with one call at most. Default: 250.
	BatchSize int
	// Batches is how many such calls may run at a time, at least 2. Default: 8.
	Batches int
	// Calls is how many acquires may run at a time, and how many releases and abandons beside
	// them. Default: 32.
	Calls int
	// Tick is how much earlier than due a grant is renewed along with others. Default: 50ms.
	Tick time.Duration
	// CallTimeout bounds one acquire, release or abandon. Default: 2s.
	CallTimeout time.Duration
	// CloseTimeout bounds the calls that still run or begin when Run is told to end. Default: 1s.
	CloseTimeout time.Duration
	// ProbeEvery is how long the store may be left alone before it is asked for ProbeKey, so that
	// Health is fresh where nothing is kept. Default: 2s.
	ProbeEvery time.Duration
	// ProbeKey is inspected and never written. Default: the key conch-probe.
	ProbeKey lock.Key
	// Random yields numbers in [0,1) and need not be safe for concurrent use. Default: math/rand.
	Random func() float64
}

// Validate reports all that does not fit, with what to write instead.
func (o Options) Validate() error {
	var problems []error
	refuse := func(yes bool, format string, args ...any) {
		if yes {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	o2 := o.withDefaults()
	refuse(o.Backend == nil, "keeper: no backend: set Options.Backend")
	refuse(o2.BatchSize < 1, "keeper: batch size %d: write at least 1", o.BatchSize)
	refuse(o2.Batches < 2, "keeper: %d batches at a time: write at least 2, or one that stalls blocks all", o.Batches)
	refuse(o2.Calls < 1, "keeper: %d calls at a time: write at least 1", o.Calls)
	refuse(o2.Retry.Initial < time.Millisecond, "keeper: first retry after %s: write at least 1ms", o.Retry.Initial)
	refuse(o2.Retry.Cap < o2.Retry.Initial, "keeper: retries every %s at most: write at least the first, %s", o2.Retry.Cap, o2.Retry.Initial)
	refuse(o2.Retry.MinFactor <= 1 || o2.Retry.MaxFactor < o2.Retry.MinFactor,
		"keeper: retry factors %g to %g: write two numbers above 1, the lower one first", o2.Retry.MinFactor, o2.Retry.MaxFactor)
	refuse(o2.Tick < 0, "keeper: tick %s: write a positive duration", o.Tick)
	refuse(o2.CallTimeout < 0, "keeper: call timeout %s: write a positive duration", o.CallTimeout)
	refuse(o2.CloseTimeout < 0, "keeper: close timeout %s: write a positive duration", o.CloseTimeout)
	refuse(o2.ProbeEvery < 0, "keeper: probe every %s: write a positive duration", o.ProbeEvery)
	if err := o2.ProbeKey.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("keeper: probe: %w", err))
	}
	return errors.Join(problems...)
}

func (o Options) withDefaults() Options {
	orElse(&o.Observer, lock.Observer(lock.Silent{}))
	orElse(&o.Retry.Initial, defaultRetryInitial)
	orElse(&o.Retry.MinFactor, defaultRetryMinFactor)
	orElse(&o.Retry.MaxFactor, max(defaultRetryMaxFactor, o.Retry.MinFactor))
	orElse(&o.Retry.Cap, max(defaultRetryCap, o.Retry.Initial))
	orElse(&o.BatchSize, defaultBatchSize)
	orElse(&o.Batches, defaultBatches)
	orElse(&o.Calls, defaultCalls)
	orElse(&o.Tick, defaultTick)
	orElse(&o.CallTimeout, defaultCallTimeout)
	orElse(&o.CloseTimeout, defaultCloseTimeout)
	orElse(&o.ProbeEvery, defaultProbeEvery)
	orElse(&o.ProbeKey.Name, defaultProbeName)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// oneAtATime lets a function be called from many goroutines.
func oneAtATime(f func() float64) func() float64 {
	var mu sync.Mutex
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return f()
	}
}

func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}
