package keeper

import (
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// stamping is what an entry knows about the stage of its tick beyond its grant. A renewal carries
// the order along, so it takes its turn among those that are most endangered, and its answer renews
// the grant as well.
type stamping struct {
	// wanted is the stage that was ordered, empty once the store has answered.
	wanted lock.Stage
	// err is why the order is not carried out.
	err error
}

// Stamp brings a held tick to a stage: started, succeeded or failed. The order goes out at once and
// is repeated until the store answers; State.Stamping names it until then. After that State.Stage
// is that stage or a later one, or State.StampErr is lock.ErrTooOld: the claim stands as it was and
// can only be given back. A tick that is not ours any more is lost like any grant. An order that
// leads nowhere or backwards is ignored.
func (k *Keeper) Stamp(id ID, stage lock.Stage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	if e == nil || e.phase != PhaseHeld || id.Key.Tick == 0 || stage.ValidateStamp() != nil {
		return
	}
	if s := e.stamping; s != nil && (errors.Is(s.err, lock.ErrTooOld) || !s.wanted.Before(stage)) {
		return
	}
	if !e.grant.Stage.Before(stage) {
		return
	}
	e.stamping = &stamping{wanted: stage}
	e.due, e.again = time.Now(), e.renewing
	k.place(e)
}

// wanted is the stage that is ordered, if any.
func (e *entry) wanted() lock.Stage {
	if e.stamping == nil {
		return ""
	}
	return e.stamping.wanted
}

// stamped notes where the store says that a tick stands. Before is where it stood.
func (k *Keeper) stamped(e *entry, before lock.Stage) {
	if e.stamping != nil && !e.grant.Stage.Before(e.stamping.wanted) && e.stamping.wanted != "" {
		e.stamping = nil
		k.news.add(e.id, true)
	}
	if e.grant.Stage != before {
		k.news.add(e.id, true)
	}
}

// stampUnanswered notes that an order was not answered.
func (e *entry) stampUnanswered(err error) {
	if e.wanted() != "" {
		e.stamping.err = err
	}
}

// stampRefused ends an order: the tick may not be started any more. The claim is still ours, and
// renewed without the order at once.
func (k *Keeper) stampRefused(m renewal, err error, now time.Time) {
	e := m.entry
	if e.wanted() == m.extension.Stage {
		e.stamping = &stamping{err: err}
	}
	e.due = now
	k.answered(e)
	k.news.add(e.id, true)
}

// notPutBack has an entry held again whose tick was found to be started when it was given back.
func (k *Keeper) notPutBack(e *entry, err error, now time.Time) {
	var started *lock.StartedError
	if errors.As(err, &started) {
		e.grant.Stage, e.grant.Token = started.Seen.Stage, started.Seen.Token
	}
	e.leaving, e.asking, e.stamping = nil, nil, nil
	k.enter(e, PhaseHeld)
	e.recover()
	e.fail(err, false, time.Time{}, seenIn(err))
	e.due = now
	k.news.add(e.id, true)
}
