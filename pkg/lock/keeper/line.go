package keeper

import (
	"context"
	"time"
)

// line is where workers of one kind wait for work. Only the one whose turn it is watches the time,
// so there is one timer however many entries and workers there are. What goes first is chosen when
// a worker is free, not before.
type line struct {
	scheduled pile // guarded by the keeper's mutex
	turn      chan struct{}
	changed   chan struct{}
}

func newLine() *line {
	return &line{scheduled: pile{before: byDue}, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

// add schedules e for its due time.
func (l *line) add(e *entry) {
	l.scheduled.add(e)
	if l.scheduled.head() == e {
		l.kick()
	}
}

// kick makes the worker whose turn it is look again.
func (l *line) kick() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// next waits for work. Take returns it, or how long there will be none (negative: until a kick).
// The second result is false once ctx has ended.
func next[T any](ctx context.Context, l *line, take func(now time.Time) (work T, ok bool, wait time.Duration)) (T, bool) {
	var none T
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return none, false
	}
	for ctx.Err() == nil {
		work, ok, wait := take(time.Now())
		if ok {
			return work, true
		}
		l.wait(ctx, wait)
	}
	return none, false
}

func (l *line) wait(ctx context.Context, d time.Duration) {
	var alarm <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-alarm:
	case <-l.changed:
	case <-ctx.Done():
	}
}
