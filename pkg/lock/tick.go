package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A tick is one scheduled run of something, and a lock of its own beside the plain key of the same name. It is claimed like a lock, and
// runs out like one; from the moment it is stamped as started it belongs to its owner for good, so that it is run once or not at all.
//
//	Acquire            -> claimed    lives for the ttl; renewed, put back, taken by the next one when it ran out
//	Stamp(started)     -> started    lives for TickRetention; nobody else is granted the tick any more
//	Stamp(succeeded)   -> succeeded  or failed: the same, and final
//	Release            claimed -> gone; started -> gone only with Leave.PutBack
//
// Fencing tokens rise over all ticks of a key and the key itself alike. A Request.Floor is about the one or the other: a plain key that is
// asked for with a tick's fencing token as floor seems to have lost data.
//
// Request.Retry makes one exception: a tick that was started and whose plain key nobody holds is claimed anew. Its minute still counts as
// started towards older ones, and no stamp of an earlier grant makes a record any more.
//
// A stamp never leads backwards. A grant that says claimed never makes a record: if the claim is gone, another one may be at it. One that
// says started does, since it is the only witness left where the store lost its data; it then also takes over a mere claim of another.

// Stage is how far a tick has come. A plain key has none.
type Stage string

const (
	// StageClaimed: somebody means to run it, and has not begun.
	StageClaimed Stage = "claimed"
	// StageStarted: it may have begun. It is run by nobody else, even if nothing more is heard of it, save with Request.Retry.
	StageStarted Stage = "started"
	// StageSucceeded and StageFailed: it is over.
	StageSucceeded Stage = "succeeded"
	StageFailed    Stage = "failed"
)

const (
	// MaxTickAge is how old a tick may be, by the store's clock, to be granted at all.
	MaxTickAge = 24 * time.Hour
	// TickRetention is how long a tick that was started is remembered, counted from its last stamp or renewal. It exceeds MaxTickAge, so
	// that no tick is forgotten while it could still be granted.
	TickRetention = 48 * time.Hour
)

// rank orders the stages; what has no stage comes first.
func (s Stage) rank() int {
	switch s {
	case StageClaimed:
		return 1
	case StageStarted:
		return 2
	case StageSucceeded, StageFailed:
		return 3
	}
	return 0
}

// Before reports whether a tick at s has still to come to other. The two ends, succeeded and failed, are not before each other.
func (s Stage) Before(other Stage) bool { return s.rank() < other.rank() }

// Begun reports whether the tick may have been started.
func (s Stage) Begun() bool { return s.rank() >= StageStarted.rank() }

// Over reports whether the tick has an outcome.
func (s Stage) Over() bool { return s.rank() >= StageSucceeded.rank() }

// ValidateStamp reports why a tick cannot be stamped with the stage, or nil.
func (s Stage) ValidateStamp() error {
	if !s.Begun() {
		return fmt.Errorf("stage %q cannot be stamped: write started, succeeded or failed", string(s))
	}
	return nil
}

// TickMinute is the Key.Tick of a run that is scheduled for t: whole minutes since 1970 in UTC.
func TickMinute(t time.Time) int64 { return t.Unix() / 60 }

// At is the key of one tick of k.
func (k Key) At(minute int64) Key {
	k.Tick = minute
	return k
}

// Plain is the key without its tick.
func (k Key) Plain() Key { return Key{Name: k.Name, Raw: k.Raw} }

// tickSuffix tells the ticks of a key apart.
func (k Key) tickSuffix() string {
	if k.Tick == 0 {
		return ""
	}
	suffix := ":tick:" + strconv.FormatInt(k.Tick, 10)
	if k.Series != "" {
		suffix = ":of:" + k.Series + suffix
	}
	return suffix
}

// Stamper is a Backend that keeps ticks.
type Stamper interface {
	// Stamp brings a tick that was granted to a stage, started or an outcome. Sending the same again is harmless, and so is a stamp that
	// arrives after a later one: the grant that is returned says where the tick stands, which is never before the stage asked for.
	//
	// The error is ErrLost where the tick is not ours: the claim ran out, it was put back, or another one has started it. It is
	// ErrTooOld where Grant.Ordered is set and a newer tick was started meanwhile; the claim then stays as it is. Else it is ErrUnknown,
	// ErrUnsupported or ErrInvalid.
	Stamp(ctx context.Context, g Grant, stage Stage) (Grant, error)
}

var (
	// ErrTooOld: the tick may not run any more. Nothing of ours was written.
	ErrTooOld = errors.New("too old to run")
	// ErrStarted: a tick that was started is not put back, unless Leave.PutBack vouches that nothing of it runs. Nothing was changed.
	ErrStarted = errors.New("started already")
)

// TooOld says why a tick may not run any more.
type TooOld string

const (
	// TooOldAge: it was due more than MaxTickAge ago, by the store's clock.
	TooOldAge TooOld = "Age"
	// TooOldSuperseded: it was started before, or a newer one was and the ticks are ordered.
	TooOldSuperseded TooOld = "Superseded"
)

// TooOldError is an ErrTooOld with what was seen.
type TooOldError struct {
	Key  Key
	Why  TooOld
	Seen View
}

func (e *TooOldError) Error() string {
	if e.Why == TooOldAge {
		return fmt.Sprintf("%s: too old to run: due more than %s ago", e.Key, MaxTickAge)
	}
	return fmt.Sprintf("%s: too old to run: the tick of minute %d was started", e.Key, e.Seen.Newest)
}

// Is makes errors.Is(err, ErrTooOld) true.
func (e *TooOldError) Is(target error) bool { return target == ErrTooOld }

// StartedError is an ErrStarted with what was seen.
type StartedError struct {
	Key  Key
	Seen View
}

func (e *StartedError) Error() string {
	return fmt.Sprintf("%s: not put back: it is %s by %s", e.Key, e.Seen.Stage, e.Seen.Owner)
}

// Is makes errors.Is(err, ErrStarted) true.
func (e *StartedError) Is(target error) bool { return target == ErrStarted }
