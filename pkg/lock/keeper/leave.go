package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// departure is one try to give a key back.
type departure struct {
	entry *entry
	grant lock.Grant // zero where only the owner is known
	how   lock.Leave
	op    string
}

func (k *Keeper) leaver(ctx, calls context.Context) {
	for {
		d, ok := next(ctx, k.leaves, k.takeLeave)
		if !ok {
			return
		}
		k.depart(calls, d)
	}
}

func (k *Keeper) takeLeave(now time.Time) (departure, bool, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wait := k.leaves.scheduled.untilDue(now); wait != 0 {
		return departure{}, false, wait
	}
	return k.departing(k.leaves.scheduled.take()), true, 0
}

func (k *Keeper) departing(e *entry) departure {
	k.calling[e.id] = struct{}{}
	d := departure{entry: e, how: e.leaving.how, op: opAbandon}
	if e.phase == PhaseReleasing && e.grant.Token != "" {
		d.grant, d.op = e.grant, opRelease
	}
	return d
}

func (k *Keeper) depart(calls context.Context, d departure) {
	ctx, cancel := context.WithTimeout(calls, k.o.CallTimeout)
	defer cancel()
	var err error
	id := d.entry.id
	sent := time.Now()
	panicked := guard(func() {
		if d.op == opRelease {
			err = k.o.Backend.Release(ctx, d.grant, d.how)
		} else {
			err = k.o.Backend.Abandon(ctx, id.Key, id.Owner)
		}
	})
	now := time.Now()
	if panicked != nil {
		// What panics can still run out by itself, so the entry is tried again until then.
		k.tellPanic(id.Key)
		err = panicked.unknown(d.op)
	} else {
		err = classified(d.op, err)
		k.tellRequested(d.op, now.Sub(sent), err)
	}
	k.noteLeave(d.entry, err, sent, now, panicked == nil)
}

func (k *Keeper) noteLeave(e *entry, err error, sent, now time.Time, heard bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if heard {
		k.hear(err, sent, now)
	}
	defer k.callEnded(e.id)
	if !k.current(e) {
		return
	}
	l := e.leaving
	unanswered := isUnknown(err) || refusedForGood(err)
	switch {
	case errors.Is(err, lock.ErrStarted):
		k.notPutBack(e, err, now)
	case !unanswered:
		e.recover()
		k.finish(e)
	case !now.Before(l.until):
		k.finish(e)
	default:
		l.pause = k.o.Retry.longer(l.pause, k.o.Random)
		e.due = earlier(now.Add(k.o.Retry.spread(l.pause, k.o.Random)), l.until)
		if e.fail(err, true, sent, nil) {
			k.news.add(e.id, false)
		}
	}
}
