package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// patience is how long one call that renews may take: about a tenth of the ttl, so that a call that
// stalls leaves time for others. Grants of different patience never share a batch.
var patience = [...]time.Duration{200 * time.Millisecond, 350 * time.Millisecond, 600 * time.Millisecond, time.Second}

// class tells which entries e may share a batch with. One whose last answer is missing is kept
// from those that are well: what ails it, such as one shard of a store, must not take them along.
func (e *entry) class() int {
	class := 0
	for i, p := range patience {
		if p <= e.terms.TTL/10 {
			class = i
		}
	}
	if e.pause > 0 {
		class += len(patience)
	}
	return class
}

const (
	// leastFactor bounds how much earlier than RenewInterval an entry is renewed. Each has a factor
	// of its own, so entries that were acquired together drift apart; none is ever later.
	leastFactor = 0.8
	// firstFactor is the same for the renewal after a grant or after an outage, when many come at
	// once and have to be spread quickly.
	firstFactor = 0.5
)

// renewal is one member of a batch, as it was when the batch was made.
type renewal struct {
	entry     *entry
	extension lock.Extension
	late      time.Duration
}

type batch struct {
	members  []renewal
	patience time.Duration
}

// loss is a grant that is no more.
type loss struct {
	key lock.Key
	err error
}

// renewer is the nth of the workers that renew.
func (k *Keeper) renewer(ctx, calls context.Context, n int) {
	for {
		b, ok := next(ctx, k.renewals, k.takeBatch)
		if !ok {
			return
		}
		k.noteSending(n, time.Now())
		k.tellLateness(b)
		k.keepHalves(k.renew(calls, b))
		k.noteSending(n, time.Time{})
	}
}

func (k *Keeper) noteSending(n int, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since.IsZero() {
		delete(k.sending, n)
	} else {
		k.sending[n] = since
	}
}

// takeBatch makes a batch of what is due, most endangered first, and of what is due within a tick.
func (k *Keeper) takeBatch(now time.Time) (batch, bool, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b, ok := k.takeHalf(); ok {
		return b, true, 0
	}
	class := k.mostEndangered()
	due := &k.renewals.scheduled
	if class >= 0 || due.untilDue(now) == 0 {
		for due.Len() > 0 && due.untilDue(now) <= k.o.Tick {
			e := due.take()
			k.ready[e.class()].add(e)
		}
		class = k.mostEndangered()
	}
	if class < 0 {
		return batch{}, false, due.untilDue(now)
	}
	return k.fill(class, now), true, 0
}

// mostEndangered finds the pile whose head ends first; -1 if all are empty.
func (k *Keeper) mostEndangered() int {
	class := -1
	for i := range k.ready {
		if e := k.ready[i].head(); e != nil && (class < 0 || byDanger(e, k.ready[class].head())) {
			class = i
		}
	}
	return class
}

func (k *Keeper) fill(class int, now time.Time) batch {
	p := &k.ready[class]
	b := batch{patience: patience[class%len(patience)], members: make([]renewal, 0, min(k.o.BatchSize, p.Len()))}
	for p.Len() > 0 && len(b.members) < k.o.BatchSize {
		e := p.take()
		e.renewing = true
		b.members = append(b.members, renewal{entry: e, extension: e.extension(), late: max(0, now.Sub(e.due))})
	}
	return b
}

func (e *entry) extension() lock.Extension {
	return lock.Extension{Grant: e.grant, TTL: e.terms.TTL, Shorten: e.shorten, Stage: e.wanted()}
}

// renew sends a batch and notes the answers. If the call panicked it returns the batch in two
// halves, which are to be renewed apart.
func (k *Keeper) renew(calls context.Context, b batch) []batch {
	ctx, cancel := context.WithTimeout(calls, b.patience)
	defer cancel()
	extensions := make([]lock.Extension, len(b.members))
	for i, m := range b.members {
		extensions[i] = m.extension
	}
	var results []lock.Result
	sent := time.Now()
	panicked := guard(func() { results = k.o.Backend.Renew(ctx, extensions) })
	now := time.Now()
	if panicked != nil {
		return k.halve(b, panicked)
	}
	unanswered := completeResults(b, &results)
	k.tellRequested(opRenew, now.Sub(sent), unanswered)
	k.tellLosses(k.noteResults(b, results, sent, now, unanswered))
	return nil
}

// completeResults puts every error in order and returns the first one that is a missing answer.
func completeResults(b batch, results *[]lock.Result) error {
	all := make([]lock.Result, len(b.members))
	n := copy(all, *results)
	var unanswered error
	for i := range all {
		if i >= n {
			all[i].Err = fmt.Errorf("the backend answered %d of %d", n, len(all))
		}
		if b.members[i].extension.Stage == "" || !isTooOld(all[i].Err) {
			all[i].Err = lostOrUnknown(opRenew, all[i].Err)
		}
		if unanswered == nil && isUnknown(all[i].Err) {
			unanswered = all[i].Err
		}
	}
	*results = all
	return unanswered
}

func (k *Keeper) noteResults(b batch, results []lock.Result, sent, now time.Time, unanswered error) []loss {
	k.mu.Lock()
	defer k.mu.Unlock()
	heard := unanswered
	for _, r := range results {
		if !isUnknown(r.Err) {
			heard = nil // some answered, so the store does
		}
	}
	k.hear(heard, sent, now)
	var losses []loss
	for i, m := range b.members {
		if !k.landed(m.entry) {
			continue
		}
		if l, lost := k.noteResult(m, results[i], sent, now); lost {
			losses = append(losses, l)
		}
	}
	return losses
}

// landed ends the flight of a renewal and reports whether its result still matters: after a
// release, a Forget or another entry under the same ID it would be a false alarm.
func (k *Keeper) landed(e *entry) bool {
	e.renewing = false
	return k.current(e) && e.phase == PhaseHeld
}

func (k *Keeper) noteResult(m renewal, r lock.Result, sent, now time.Time) (loss, bool) {
	e := m.entry
	switch {
	case r.Err == nil:
		k.renewed(m, r, sent, now)
	case isUnknown(r.Err):
		e.due = now.Add(k.renewAgain(e))
		e.stampUnanswered(r.Err)
		if e.fail(r.Err, true, sent, nil) {
			k.news.add(e.id, false)
		}
	case isTooOld(r.Err):
		k.stampRefused(m, r.Err, now)
	default:
		return k.lose(e, r.Err), true
	}
	if e.again {
		e.again, e.due = false, now
	}
	k.place(e)
	return loss{}, false
}

// renewAgain is the pause before a renewal is repeated. The first ones are short; much is left to
// chance, so that those who failed together part, and recover at different moments.
func (k *Keeper) renewAgain(e *entry) time.Duration {
	row := k.o.Retry
	row.Cap = max(e.terms.RenewInterval/2, time.Millisecond)
	row.Initial = min(2*row.Initial, row.Cap)
	e.pause = row.longer(e.pause, k.o.Random)
	return time.Duration(float64(e.pause) * (1 + k.o.Random()) / 2)
}

func (k *Keeper) renewed(m renewal, r lock.Result, sent, now time.Time) {
	e, g := m.entry, r.Grant
	stage, awaited := e.grant.Stage, e.awaited
	if e.shorten && (!m.extension.Shorten || m.extension.TTL != e.terms.TTL) {
		// The terms were shortened while this was under way: what it gained counts no more.
		g.ValidUntil = earlier(g.ValidUntil, e.grant.ValidUntil)
	} else {
		e.shorten = false
	}
	e.grant, e.renewedAt, e.awaited = g, sent, r.Awaited
	k.stamped(e, stage)
	first := e.unanswered
	k.answered(e)
	recovered := e.recover()
	if first || recovered || awaited != e.awaited {
		k.news.add(e.id, false)
	}
	e.due = k.nextRenewal(e, sent, now, first || recovered)
}

// nextRenewal is one interval after the last, but never after the middle of what is left.
func (k *Keeper) nextRenewal(e *entry, sent, now time.Time, spread bool) time.Time {
	factor := e.factor
	if spread {
		factor = firstFactor + (1-firstFactor)*k.o.Random()
	}
	due := sent.Add(time.Duration(float64(e.terms.RenewInterval) * factor))
	middle := now.Add(e.grant.ValidUntil.Sub(now) / 2)
	return later(earlier(due, middle), now.Add(min(k.o.Retry.Initial, e.terms.RenewInterval)/2))
}

// lose makes an entry PhaseLost.
func (k *Keeper) lose(e *entry, err error) loss {
	e.fail(err, false, time.Time{}, seenIn(err))
	lift(e)
	k.enter(e, PhaseLost)
	k.news.add(e.id, true)
	return loss{key: e.id.Key, err: err}
}
