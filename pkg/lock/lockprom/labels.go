package lockprom

import (
	"errors"
	"slices"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	outcomeOK      = "ok"
	outcomeHeld    = "held"
	outcomeLost    = "lost"
	outcomeUnknown = "unknown"
	outcomeRefused = "refused" // not sent: malformed, or not supported by the backend
)

// outcomeOf names the outcome of a call. Whatever is not one of the contract's is no answer.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, lock.ErrUnknown):
		return outcomeUnknown
	case errors.Is(err, lock.ErrHeld):
		return outcomeHeld
	case errors.Is(err, lock.ErrLost):
		return outcomeLost
	case errors.Is(err, lock.ErrUnsupported), errors.Is(err, lock.ErrInvalid):
		return outcomeRefused
	}
	return outcomeUnknown
}

func boundedOp(op string) string {
	if slices.Contains([]string{"acquire", "renew", "release", "abandon", "inspect"}, op) {
		return op
	}
	return "other"
}

// boundedReason keeps a reason that a backend made up out of the labels.
func boundedReason(r lock.Reason) string {
	switch r {
	case lock.ReasonUnreachable, lock.ReasonTimeout, lock.ReasonNoAuth, lock.ReasonWrongPass, lock.ReasonNoPerm,
		lock.ReasonReadOnly, lock.ReasonWrongType, lock.ReasonMoved, lock.ReasonLoading, lock.ReasonLayoutTooNew,
		lock.ReasonTLS, lock.ReasonNoReply:
		return string(r)
	}
	return string(lock.ReasonOther)
}
