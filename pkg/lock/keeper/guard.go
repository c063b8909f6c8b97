package keeper

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// PanicError is the loss of a lock whose keeping panicked. It is a lock.ErrLost.
type PanicError struct {
	Key   lock.Key
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: lost: the keeping of it caused a panic: %v", e.Key, e.Value)
}

// Is makes errors.Is(err, lock.ErrLost) true.
func (e *PanicError) Is(target error) bool { return target == lock.ErrLost }

// unknown is the panic as a missing answer, for calls that are worth another try.
func (e *PanicError) unknown(op string) error {
	return &lock.UnknownError{Op: op, Reason: lock.ReasonOther, Err: fmt.Errorf("panic: %v", e.Value)}
}

// guard calls f and catches a panic in it.
func guard(f func()) (caught *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			caught = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// What follows tells the observer. One that panics is counted if it can be, and costs no lock.

func (k *Keeper) tell(key lock.Key, f func(lock.Observer)) {
	if guard(func() { f(k.o.Observer) }) != nil {
		k.tellPanic(key)
	}
}

func (k *Keeper) tellPanic(key lock.Key) {
	_ = guard(func() { k.o.Observer.Panicked(key) }) // nobody is left to tell
}

func (k *Keeper) tellRequested(op string, took time.Duration, err error) {
	k.tell(lock.Key{}, func(o lock.Observer) { o.Requested(op, took, err) })
}

func (k *Keeper) tellLateness(b batch) {
	for _, m := range b.members {
		k.tell(m.entry.id.Key, func(o lock.Observer) { o.RenewedLate(m.late) })
	}
}

func (k *Keeper) tellLosses(losses []loss) {
	for _, l := range losses {
		k.tell(l.key, func(o lock.Observer) { o.Lost(l.key, l.err) })
	}
}

// reportHeld returns a function that tells how many grants are held if that changed. One goroutine
// calls it, so that the number told last is the right one.
func (k *Keeper) reportHeld() func() {
	last := -1
	return func() {
		k.mu.Lock()
		n := k.held
		k.mu.Unlock()
		if n != last {
			last = n
			k.tell(lock.Key{}, func(o lock.Observer) { o.Holding(n) })
		}
	}
}
