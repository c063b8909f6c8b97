package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

type ask struct {
	entry   *entry
	request lock.Request
}

func (k *Keeper) asker(ctx context.Context) {
	for {
		a, ok := next(ctx, k.asks, k.takeAsk)
		if !ok {
			return
		}
		k.ask(ctx, a)
	}
}

func (k *Keeper) takeAsk(now time.Time) (ask, bool, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	due := &k.asks.scheduled
	if wait := due.untilDue(now); wait != 0 {
		return ask{}, false, wait
	}
	e := due.take()
	k.calling[e.id] = struct{}{}
	e.asking.sent, e.asking.hinted = now, false
	return ask{entry: e, request: e.asking.request}, true, 0
}

// ask makes one attempt. It is cut short when ctx ends: a grant that nobody waits for any more is
// worth nothing.
func (k *Keeper) ask(ctx context.Context, a ask) {
	// An answer that takes longer than the ttl is worth nothing either.
	limit := min(k.o.CallTimeout, max(a.request.TTL, patience[0]))
	callCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var got lock.Acquired
	var err error
	sent := time.Now()
	panicked := guard(func() { got, err = k.o.Backend.Acquire(callCtx, a.request) })
	now := time.Now()
	err = classified(opAcquire, err)
	if err == nil && panicked == nil && !got.Grant.Valid(now) {
		// The same owner asks again and finds its key, if it is still there.
		err = &lock.UnknownError{Op: opAcquire, Reason: lock.ReasonNoReply,
			Err: fmt.Errorf("granted %s after it was sent, when the grant had run out", now.Sub(sent))}
	}
	if panicked != nil {
		k.askPanicked(a, panicked)
		return
	}
	k.tellRequested(opAcquire, now.Sub(sent), err)
	k.noteAsk(a, got, err, sent, now)
}

func (k *Keeper) noteAsk(a ask, got lock.Acquired, err error, sent, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hear(err, sent, now)
	e := a.entry
	defer k.callEnded(e.id)
	if !k.current(e) {
		return
	}
	if isUnknown(err) {
		e.asking.doubtful = true
	}
	switch {
	case e.phase != PhaseWaiting:
		k.calledOff(e, got, err, now)
	case err == nil:
		k.granted(e, got, sent, now)
	case isLost(err):
		k.lose(e, err) // not told as a loss: that was the end of the tenure before
	default:
		k.refused(e, err, sent, now)
	}
}

func (k *Keeper) granted(e *entry, got lock.Acquired, sent, now time.Time) {
	e.grant = got.Grant
	got.Grant = lock.Grant{}
	e.answer = &answer{acquired: got, at: now}
	e.recover()
	e.asking = nil
	k.enter(e, PhaseHeld)
	e.due = k.nextRenewal(e, sent, now, true)
	if e.grant.TTL == e.terms.TTL {
		e.shorten = false
	} else {
		k.retime(e, now)
	}
	k.news.add(e.id, true)
}

func (k *Keeper) refused(e *entry, err error, sent, now time.Time) {
	if e.fail(err, isUnknown(err), sent, seenIn(err)) {
		k.news.add(e.id, false)
	}
	a := e.asking
	a.request.Floor = max(a.request.Floor, floorAbove(seenIn(err)))
	if refusedForGood(err) || isTooOld(err) {
		a.pause = k.o.Retry.Cap
	} else {
		a.pause = k.o.Retry.longer(a.pause, k.o.Random)
	}
	e.due = now.Add(k.o.Retry.spread(a.pause, k.o.Random))
	if a.hinted {
		e.due = k.soonest(e, now)
	}
}

// floorAbove is the lowest fencing token that is acceptable once a view was seen. A waiter that did
// not raise its floor would take a store that lost its data meanwhile for one that never had any,
// and start beside a holder that still runs.
func floorAbove(v *lock.View) lock.FencingToken {
	if v == nil {
		return 0
	}
	if highest := max(v.FencingToken, v.Highest); highest > 0 {
		return highest + 1
	}
	return 0
}

// calledOff decides what an attempt leaves behind that was called off while it was under way.
func (k *Keeper) calledOff(e *entry, got lock.Acquired, err error, now time.Time) {
	if err == nil {
		e.grant = got.Grant
	}
	if !e.mayBeStored() {
		k.finish(e)
		return
	}
	e.leaving.until = now.Add(e.longestLife())
	e.due = now
}

// askPanicked ends an attempt whose call panicked. Whether it left anything is not known, so a
// Release or Abandon of the lost entry asks the store.
func (k *Keeper) askPanicked(a ask, p *PanicError) {
	k.mu.Lock()
	e := a.entry
	var losses []loss
	if k.current(e) {
		e.asking.doubtful = true
		if e.phase == PhaseWaiting {
			p.Key = e.id.Key
			losses = append(losses, k.lose(e, p))
		}
	}
	k.callEnded(e.id)
	k.mu.Unlock()
	k.tellPanic(e.id.Key)
	k.tellLosses(losses)
}

// soonest is the earliest moment at which an entry may ask again, whoever wakes it.
func (k *Keeper) soonest(e *entry, now time.Time) time.Time {
	return later(now, e.asking.sent.Add(k.o.Retry.Initial))
}
