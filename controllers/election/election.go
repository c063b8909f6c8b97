package election

import (
	"slices"
	"sync"
	"time"
)

// Election is one replica's part in the election. Run drives it; everything else may be called at
// any time and returns at once.
type Election struct {
	opts Options
	now  func() time.Time
	// kick cuts the pause of the loop short.
	kick chan struct{}

	mu sync.Mutex // guards the rest
	// confirmed is when the newest write that succeeded was sent, and until the end of the right to
	// decide that follows from it.
	confirmed, until time.Time
	epoch            int64
	deciders         []string
	// told is what subscribers were last told.
	told        bool
	subscribers []chan struct{}
	// outage is set from StepDown to Answered, so that a replica steps down once per outage, and
	// pausedUntil is when it may contend again.
	outage      bool
	pausedUntil time.Time
}

// New returns an Election that Run has to drive, or every problem of its options.
func New(o Options) (*Election, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Election{opts: o, now: o.Now, kick: make(chan struct{}, 1)}, nil
}

// Deciding reports whether this replica decides, as of the moment of the call. It may turn false
// between two calls by itself. The first to ask then sets off the news, so that whoever was told
// false here hears of it when it turns true again, however soon that is.
func (e *Election) Deciding() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell()
	return e.deciding()
}

func (e *Election) deciding() bool { return e.now().Before(e.until) }

// Epoch numbers the terms of deciders: it rises with each replica that gets the Lease, and again
// when one gets it back. Zero before the first term of this replica; a replica that does not decide
// reports its own last term.
func (e *Election) Epoch() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.epoch
}

// Confirmed returns when the newest write of the Lease that succeeded was sent. Nobody else had the
// Lease then.
func (e *Election) Confirmed() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.confirmed
}

// Deciders returns the identities of this cluster's newest deciders, this replica included, as the
// Lease said at the beginning of this replica's last term.
func (e *Election) Deciders() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.deciders)
}

// Changed returns a channel of its own for each caller, which gets a value whenever Deciding or
// Epoch may have changed. Values that nobody took merge into one.
func (e *Election) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := make(chan struct{}, 1)
	e.subscribers = append(e.subscribers, ch)
	return ch
}

// StepDown gives up the Lease because this replica cannot reach its store, and reports whether it
// did: not if it does not decide, nor a second time before Answered. From the call on Deciding is
// false. The replica contends again once another one had the Lease, or RetryPeriod has passed, within
// which every replica that lives looks twice at a Lease that is free, or the store has answered; so a
// store that is away for everybody passes the Lease around once, and a replica that is alone is back
// before anything has to be fenced.
func (e *Election) StepDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.outage || !e.deciding() {
		return false
	}
	e.outage = true
	e.pausedUntil = e.now().Add(e.opts.RetryPeriod)
	e.revoke()
	e.wake()
	return true
}

// Answered tells that the store answers again, or still does.
func (e *Election) Answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.outage {
		return
	}
	e.outage = false
	e.resume()
}

// hadChance tells that another replica had the Lease since this one stepped down.
func (e *Election) hadChance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resume()
}

// resume ends the pause after a StepDown. The caller holds mu.
func (e *Election) resume() {
	if e.pausedUntil.IsZero() {
		return
	}
	e.pausedUntil = time.Time{}
	e.wake()
}

func (e *Election) paused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now().Before(e.pausedUntil)
}

// grant takes in a write that succeeded: the right to decide counts from before it was sent.
func (e *Election) grant(sent time.Time, r record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now().Before(e.pausedUntil) {
		return // stepped down while the write was under way
	}
	e.tell() // of a right that ended meanwhile
	if e.epoch != r.transitions {
		e.epoch, e.deciders, e.told = r.transitions, r.deciders, false
	}
	e.confirmed, e.until = sent, sent.Add(e.opts.RenewDeadline)
	e.tell()
}

// withdraw takes the right to decide away at once.
func (e *Election) withdraw() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoke()
}

func (e *Election) revoke() {
	e.until = time.Time{}
	e.tell()
}

// tell wakes the subscribers if what they were last told is no longer so. The caller holds mu.
func (e *Election) tell() {
	if e.deciding() == e.told {
		return
	}
	e.told = !e.told
	for _, ch := range e.subscribers {
		signal(ch)
	}
}

func (e *Election) wake() { signal(e.kick) }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
