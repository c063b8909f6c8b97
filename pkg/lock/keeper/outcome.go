package keeper

import (
	"context"
	"errors"

	"github.com/conch-dev/conch/pkg/lock"
)

// The names of calls, as an Observer hears them.
const (
	opAcquire = "acquire"
	opRenew   = "renew"
	opRelease = "release"
	opAbandon = "abandon"
	opInspect = "inspect"
)

// classified makes an error one of the contract's. What a backend did not classify is no answer:
// the other outcomes would stop work or start it.
func classified(op string, err error) error {
	for _, known := range []error{nil, lock.ErrHeld, lock.ErrLost, lock.ErrUnknown, lock.ErrUnsupported, lock.ErrInvalid,
		lock.ErrTooOld, lock.ErrStarted} {
		if errors.Is(err, known) {
			return err
		}
	}
	return unknown(op, err)
}

func unknown(op string, err error) error {
	reason := lock.ReasonOther
	if errors.Is(err, context.DeadlineExceeded) {
		reason = lock.ReasonTimeout
	}
	return &lock.UnknownError{Op: op, Reason: reason, Err: err}
}

// lostOrUnknown is for calls that can end in no other way.
func lostOrUnknown(op string, err error) error {
	switch {
	case err == nil, isLost(err), isUnknown(err):
		return err
	case errors.Is(err, lock.ErrHeld), errors.Is(err, lock.ErrTooOld), errors.Is(err, lock.ErrStarted), refusedForGood(err):
		return unknown(op, errors.New(err.Error())) // stripped of an outcome it cannot have
	}
	return unknown(op, err)
}

// isLost is false where only a part of the answer says so.
func isLost(err error) bool { return errors.Is(err, lock.ErrLost) && !isUnknown(err) }

// isTooOld is about a tick that may not run any more.
func isTooOld(err error) bool { return errors.Is(err, lock.ErrTooOld) && !isUnknown(err) }

func isUnknown(err error) bool { return errors.Is(err, lock.ErrUnknown) }

// refusedForGood reports whether the same call can never succeed. It was not sent either.
func refusedForGood(err error) bool {
	return errors.Is(err, lock.ErrUnsupported) || errors.Is(err, lock.ErrInvalid)
}

// seenIn extracts who has the key, or nil where the error does not tell.
func seenIn(err error) *lock.View {
	var held *lock.HeldError
	if errors.As(err, &held) {
		return &held.Seen
	}
	var lost *lock.LostError
	if errors.As(err, &lost) {
		return &lost.Seen
	}
	var old *lock.TooOldError
	if errors.As(err, &old) {
		return &old.Seen
	}
	var started *lock.StartedError
	if errors.As(err, &started) {
		return &started.Seen
	}
	return nil
}
