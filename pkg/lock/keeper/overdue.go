package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	// overdueAfter is how long a renewal may be due without an answer before that is called an
	// error. It is more than the longest patience, so only a backend that does not end its calls, or
	// a process that is starved, gets there.
	overdueAfter = 2 * time.Second
	watchEvery   = time.Second
)

var errOverdue = errors.New("the renewal is overdue: the backend does not return, or this process is starved")

// watch sees to it that a grant which is not renewed never looks well, even if the backend breaks
// its promise to return. The caller counts on hearing of missing answers.
func (k *Keeper) watch(ctx context.Context) {
	for ctx.Err() == nil {
		rest(ctx, watchEvery)
		k.markOverdue(time.Now())
	}
}

func (k *Keeper) markOverdue(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.lagging(now) {
		return
	}
	for _, e := range k.entries {
		if e.phase != PhaseHeld || now.Sub(e.due) < overdueAfter {
			continue
		}
		if e.trouble != nil && !e.trouble.since.IsZero() {
			continue // known already
		}
		err := &lock.UnknownError{Op: opRenew, Reason: lock.ReasonTimeout, Err: errOverdue}
		e.fail(err, true, e.due, nil)
		k.hear(err, e.due, now)
		k.news.add(e.id, false)
	}
}

// lagging reports whether anything may be overdue, so that not all entries are looked at every
// time.
func (k *Keeper) lagging(now time.Time) bool {
	for b := range k.sending {
		if now.Sub(k.sending[b]) >= overdueAfter {
			return true
		}
	}
	if e := k.renewals.scheduled.head(); e != nil && now.Sub(e.due) >= overdueAfter {
		return true
	}
	for i := range k.ready {
		if k.ready[i].Len() > 0 {
			return true
		}
	}
	return false
}
