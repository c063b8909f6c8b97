package lock

import (
	"errors"
	"fmt"
	"time"
)

const (
	// MinTTL and MaxTTL bound what a backend accepts. Products may be stricter.
	MinTTL = 100 * time.Millisecond
	MaxTTL = 24 * time.Hour

	driftPercent = 1
	driftFixed   = 2 * time.Millisecond
)

// Drift is what is taken off a ttl for clocks that run at slightly different speeds.
func Drift(ttl time.Duration) time.Duration { return ttl*driftPercent/100 + driftFixed }

// ValidUntil is the end of a lease of ttl that was asked for at sent. Sent must have been read
// before the request left, with its monotonic clock.
func ValidUntil(sent time.Time, ttl time.Duration) time.Time { return sent.Add(ttl - Drift(ttl)) }

// Timing is how one lock is kept and given up. All values are positive.
type Timing struct {
	TTL           time.Duration
	RenewInterval time.Duration
	FenceGrace    time.Duration
	Margin        time.Duration
	TakeoverDelay time.Duration
}

const (
	maxMargin     = 5 * time.Second
	minFenceGrace = 2 * time.Second
)

// WithDefaults fills what is zero from the ttl: renewal every sixth of it, a sixth (at least two
// seconds, whole ones) to stop, a twelfth (at most five seconds) as margin, and the sum of the
// three as takeover delay.
func (t Timing) WithDefaults() Timing {
	if t.RenewInterval == 0 {
		t.RenewInterval = t.TTL / 6
	}
	if t.FenceGrace == 0 {
		t.FenceGrace = max((t.TTL / 6).Truncate(time.Second), minFenceGrace)
	}
	if t.Margin == 0 {
		t.Margin = min(t.TTL/12, maxMargin)
	}
	if t.TakeoverDelay == 0 {
		t.TakeoverDelay = t.RenewInterval + t.FenceGrace + t.Margin
	}
	return t
}

// Validate reports all that does not fit, with what to write instead.
func (t Timing) Validate() error {
	var problems []error
	if t.TTL < MinTTL || t.TTL > MaxTTL {
		problems = append(problems, fmt.Errorf("ttl %s: write between %s and %s", t.TTL, MinTTL, MaxTTL))
	}
	if t.RenewInterval <= 0 || t.FenceGrace <= 0 || t.Margin <= 0 {
		problems = append(problems, errors.New("renewInterval, fenceGrace and margin must be positive"))
	}
	if need := 2*t.RenewInterval + t.FenceGrace + t.Margin; need > t.TTL {
		problems = append(problems, fmt.Errorf(
			"2 x renewInterval + fenceGrace + margin = %s exceeds ttl %s: raise ttl to %s, or lower renewInterval or fenceGrace", need, t.TTL, need))
	}
	return errors.Join(problems...)
}

// FenceAt is when a holder must be told to stop, given when its grant ends.
func (t Timing) FenceAt(validUntil time.Time) time.Time {
	return validUntil.Add(-t.FenceGrace - t.Margin)
}
