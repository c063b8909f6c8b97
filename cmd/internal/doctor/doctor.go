// Package doctor finds out whether backends can do what conch needs, and says so in one line each.
//
// An examination takes and gives back one short lock under conch's prefix. That is the real path
// with every right it needs; a ping would be answered by a server that grants no lock at all.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	// probeName is the lock that is taken. Scoped keys have slashes, so nothing else has this name.
	probeName = "conch-doctor"
	// probeTTL is short, in case the process ends before it gives the lock back.
	probeTTL = time.Second
)

// Finding is the result of one examination.
type Finding struct {
	Backend string
	// Address is where the backend is, without credentials.
	Address string
	// Reason is empty where all is well.
	Reason lock.Reason
	// Message says what is wrong and what to mend, or which server answers.
	Message string
}

// OK reports whether all is well.
func (f Finding) OK() bool { return f.Reason == "" }

// String is one line, fit for a log or a terminal.
func (f Finding) String() string {
	result := "ok"
	if !f.OK() {
		result = string(f.Reason)
	}
	return fmt.Sprintf("backend %s (%s): %s: %s", f.Backend, f.Address, result, f.Message)
}

// Examine looks at one backend. Nonce tells examiners apart that do so at the same time.
func Examine(ctx context.Context, name, address string, b lock.Backend, nonce string) Finding {
	f := Finding{Backend: name, Address: address}
	if err := tryLock(ctx, b, nonce); err != nil {
		f.Reason, f.Message = explain(err)
		return f
	}
	f.Message = describe(ctx, b)
	return f
}

// tryLock takes the probe and gives it back. Another examiner that has it proves the same.
func tryLock(ctx context.Context, b lock.Backend, nonce string) error {
	got, err := b.Acquire(ctx, lock.Request{Key: lock.Key{Name: probeName}, Owner: lock.NewOwner(probeName, nonce), TTL: probeTTL})
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.Release(ctx, got.Grant, lock.Leave{}); err != nil && !errors.Is(err, lock.ErrLost) {
		return err
	}
	return nil
}

// describe names the server where it may be asked; the right to do so is not needed for locks.
func describe(ctx context.Context, b lock.Backend) string {
	d, ok := b.(lock.Describer)
	if !ok {
		return "takes and gives back locks"
	}
	facts, err := d.Describe(ctx)
	if err != nil {
		return "takes and gives back locks (the server is not described: " + string(lock.ReasonOf(err)) + ")"
	}
	return facts.Server + ", " + facts.Role
}

// explain takes what to mend out of an error.
func explain(err error) (lock.Reason, string) {
	var u *lock.UnknownError
	if errors.As(err, &u) && u.Err != nil {
		return u.Reason, oneLine(u.Err.Error())
	}
	return lock.ReasonOf(err), oneLine(err.Error())
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
