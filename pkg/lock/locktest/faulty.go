package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Op names one call of a backend.
type Op string

// The calls that a fault may befall.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
	Abandon Op = "abandon"
	Inspect Op = "inspect"
	Stamp   Op = "stamp"
)

// Fault is what happens to calls. Exactly one of Fail, LoseReply, Hang and Slow is meant to be set.
type Fault struct {
	// Ops are the calls it befalls; none means all.
	Ops []Op
	// Key restricts it to calls about that key, if set. A Renew is about every key in it.
	Key lock.Key
	// Times is how often it happens; zero means until Heal.
	Times int

	// Fail answers with ErrUnknown and does nothing.
	Fail bool
	// LoseReply does what was asked and answers with ErrUnknown.
	LoseReply bool
	// Hang answers with ErrUnknown once the context has ended or Heal was called, and does nothing.
	Hang bool
	// Slow waits that long, then does what was asked.
	Slow time.Duration
	// Reason is the reason of the ErrUnknown. Default: Unreachable.
	Reason lock.Reason
}

var errInjected = errors.New("injected by the test")

// Faulty is a backend that goes wrong on purpose. Optional interfaces are passed through; where the inner backend lacks one, the answer is
// ErrUnsupported.
type Faulty struct {
	inner lock.Backend

	mu     sync.Mutex
	faults []*Fault
	healed chan struct{}
	calls  map[Op]int
}

var (
	_ lock.Backend   = (*Faulty)(nil)
	_ lock.Notifier  = (*Faulty)(nil)
	_ lock.Describer = (*Faulty)(nil)
	_ lock.Announcer = (*Faulty)(nil)
	_ lock.Stamper   = (*Faulty)(nil)
)

// Wrap returns a backend that does what inner does, until faults are injected.
func Wrap(inner lock.Backend) *Faulty {
	return &Faulty{inner: inner, healed: make(chan struct{}), calls: map[Op]int{}}
}

// Inject adds a fault. The first one that fits a call befalls it.
func (f *Faulty) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
}

// Heal ends all faults, and the calls that hang.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
	close(f.healed)
	f.healed = make(chan struct{})
}

// Calls is how often a call was made, faulty or not.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// take counts a call and uses up the fault that befalls it.
func (f *Faulty) take(op Op, keys ...lock.Key) (Fault, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	for i, fault := range f.faults {
		if !fault.fits(op, keys) {
			continue
		}
		if fault.Times == 1 {
			f.faults = slices.Delete(f.faults, i, i+1)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return *fault, f.healed
	}
	return Fault{}, f.healed
}

func (f *Fault) fits(op Op, keys []lock.Key) bool {
	return (len(f.Ops) == 0 || slices.Contains(f.Ops, op)) && (f.Key == lock.Key{} || slices.Contains(keys, f.Key))
}

// befall runs do under the fault that befalls the call, and returns the error that takes the place of the answer.
func (f *Faulty) befall(ctx context.Context, op Op, do func(), keys ...lock.Key) error {
	fault, healed := f.take(op, keys...)
	unknown := &lock.UnknownError{Op: string(op), Reason: fault.Reason, Err: errInjected}
	if unknown.Reason == "" {
		unknown.Reason = lock.ReasonUnreachable
	}
	switch {
	case fault.Fail:
		return unknown
	case fault.Hang:
		select {
		case <-ctx.Done():
		case <-healed:
		}
		return unknown
	case fault.Slow > 0:
		if !waited(ctx, fault.Slow) {
			return unknown
		}
	}
	do()
	if fault.LoseReply {
		return unknown
	}
	return nil
}

func waited(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
