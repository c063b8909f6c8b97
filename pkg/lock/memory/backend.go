package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	remember = 30 * 24 * time.Hour  // how long helpers outlive the last use
	ahead    = 365 * 24 * time.Hour // a stored fencing token further ahead of the clock is ignored
	maxFence = 1 << 53              // what other stores can count up to
)

// Options of a Backend. The zero value is fine.
type Options struct {
	// Now is the clock of the store and of the grants' validity. Default: time.Now.
	Now func() time.Time
}

// Backend is a store and its client in one. Make it with New.
type Backend struct {
	now func() time.Time

	mu        sync.Mutex
	keys      map[lock.Key]*entry
	clusters  map[string]string
	listeners map[int]listener
	next      int
	fault     Fault
}

// Fault is asked before each call of the contract with its name in lower case. A nil Fault, or one that returns nil, lets the call through.
// It may block until ctx ends.
type Fault func(ctx context.Context, operation string) error

type listener struct {
	hint   func(lock.Key)
	missed func()
}

var (
	_ lock.Backend   = (*Backend)(nil)
	_ lock.Notifier  = (*Backend)(nil)
	_ lock.Describer = (*Backend)(nil)
	_ lock.Announcer = (*Backend)(nil)
	_ lock.Stamper   = (*Backend)(nil)
)

// New returns an empty store.
func New(o Options) *Backend {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Backend{now: o.Now, keys: map[lock.Key]*entry{}, clusters: map[string]string{}, listeners: map[int]listener{}}
}

// Fail sets what befalls calls from now on; nil ends it.
func (b *Backend) Fail(f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = f
}

// enter runs the fault of an operation, without the mutex, so that a call that hangs holds up no other one.
func (b *Backend) enter(ctx context.Context, operation string, key lock.Key) error {
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	err := ctx.Err()
	if err == nil && fault != nil {
		err = fault(ctx, operation)
	}
	var told *lock.UnknownError
	if err == nil || errors.As(err, &told) {
		return err
	}
	reason := lock.ReasonOther
	if ctx.Err() != nil {
		reason = lock.ReasonNoReply
	}
	return &lock.UnknownError{Op: operation + " " + key.String(), Reason: reason, Err: err}
}

// entry returns what is stored for a key, after dropping what has run out. The mutex must be held.
func (b *Backend) entry(k lock.Key) (*entry, time.Time) {
	now := b.now()
	e := b.keys[k]
	if e == nil {
		e = &entry{key: k}
		b.keys[k] = e
	}
	e.expire(now)
	return e, now
}

func invalid(problems ...error) error {
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%w: %w", lock.ErrInvalid, err)
	}
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < lock.MinTTL || ttl > lock.MaxTTL {
		return fmt.Errorf("ttl %s: write between %s and %s", ttl, lock.MinTTL, lock.MaxTTL)
	}
	return nil
}

func checkWait(what string, d time.Duration) error {
	if d < 0 || d > lock.MaxTTL {
		return fmt.Errorf("%s %s: write between 0 and %s", what, d, lock.MaxTTL)
	}
	return nil
}
