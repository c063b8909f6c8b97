package lock

import (
	"errors"
	"fmt"
)

var (
	// ErrHeld: another owner has the key. Nothing of ours is in the store.
	ErrHeld = errors.New("held by another")
	// ErrLost: the key was ours and is no more.
	ErrLost = errors.New("lost")
	// ErrUnknown: the store did not answer, or not in a way that counts. Anything may be true.
	ErrUnknown = errors.New("cannot tell")
	// ErrUnsupported: this backend cannot do what was asked. Nothing was sent.
	ErrUnsupported = errors.New("not supported by this backend")
	// ErrInvalid: the request is malformed. Nothing was sent.
	ErrInvalid = errors.New("invalid request")
)

// HeldError is an ErrHeld with what was seen.
type HeldError struct {
	Key  Key
	Seen View
}

func (e *HeldError) Error() string {
	if e.Seen.State == ViewForeign {
		return fmt.Sprintf("%s: held by something that is not conch (%s)", e.Key, describeForeign(e.Seen))
	}
	if e.Seen.Stage.Begun() {
		return fmt.Sprintf("%s: %s by %s", e.Key, e.Seen.Stage, e.Seen.Owner)
	}
	return fmt.Sprintf("%s: held by %s", e.Key, e.Seen.Owner)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError is an ErrLost with what stands in the grant's place.
type LostError struct {
	Key   Key
	Token Token
	Seen  View
}

func (e *LostError) Error() string {
	switch e.Seen.State {
	case ViewFree:
		return fmt.Sprintf("%s: lost: the key is gone (token %s)", e.Key, e.Token)
	case ViewForeign:
		return fmt.Sprintf("%s: lost to something that is not conch (%s; token %s)", e.Key, describeForeign(e.Seen), e.Token)
	default:
		return fmt.Sprintf("%s: lost to %s (token %s)", e.Key, e.Seen.Owner, e.Token)
	}
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Gone reports whether nobody has the key now.
func (e *LostError) Gone() bool { return e.Seen.State == ViewFree }

// UnknownError is an ErrUnknown with a reason that names what to mend.
type UnknownError struct {
	Op     string
	Reason Reason
	Err    error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: cannot tell: %s: %v", e.Op, e.Reason, e.Err)
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Err }

// Reason classifies why a store could not answer. Its text is one PascalCase word, fit for a
// condition.
type Reason string

const (
	ReasonUnreachable  Reason = "Unreachable"  // no connection could be made
	ReasonTimeout      Reason = "Timeout"      // connected, no answer in time
	ReasonNoAuth       Reason = "NoAuth"       // the server wants a password and none is configured
	ReasonWrongPass    Reason = "WrongPass"    // the server refused user or password
	ReasonNoPerm       Reason = "NoPerm"       // the user lacks the right to a command or key
	ReasonReadOnly     Reason = "ReadOnly"     // a replica answered
	ReasonWrongType    Reason = "WrongType"    // a helper key has another type
	ReasonMoved        Reason = "Moved"        // a cluster answered a standalone client
	ReasonLoading      Reason = "Loading"      // the server reads its data, or a replica has no master
	ReasonLayoutTooNew Reason = "LayoutTooNew" // a newer release of conch wrote the store's layout
	ReasonTLS          Reason = "TLS"          // the TLS handshake failed
	ReasonNoReply      Reason = "NoReply"      // the answer came too late to be worth anything
	ReasonOther        Reason = "BackendError" // anything else; the message has it
)

// ReasonOf extracts the reason from an error, ReasonOther where it has none.
func ReasonOf(err error) Reason {
	var u *UnknownError
	if errors.As(err, &u) {
		return u.Reason
	}
	return ReasonOther
}

func describeForeign(v View) string {
	if v.NoExpiry {
		return fmt.Sprintf("a %s without expiry", v.Type)
	}
	return fmt.Sprintf("a %s that expires in %s", v.Type, v.Remaining)
}
