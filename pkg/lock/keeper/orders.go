package keeper

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Acquire contends for a key until it is granted or called off: at once, then after pauses as of
// Options.Retry, which a hint of the store cuts short. After a missing answer it asks again as the
// same owner. Given again for an entry that still waits, it replaces the request and the terms, and
// the pace stays as it is; for any other entry it is ignored.
func (k *Keeper) Acquire(w Want) {
	id := ID{Key: w.Request.Key, Owner: w.Request.Owner}
	terms := w.Terms.normal(w.Request.TTL)
	if w.Request.TTL <= 0 {
		w.Request.TTL = terms.TTL
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[id]; e != nil {
		if e.phase == PhaseWaiting {
			e.asking.request, e.terms = w.Request, terms
		}
		return
	}
	e := k.add(id, terms)
	e.asking = &asking{request: w.Request}
	k.enter(e, PhaseWaiting)
	k.place(e)
}

// Adopt keeps a grant that is known from elsewhere. Its token must be set; ValidUntil may be zero,
// which means that the store has not confirmed it yet. It is renewed at once and then on schedule.
// Adopt is ignored for an ID that has an entry: to put another grant in its place, forget that.
func (k *Keeper) Adopt(g lock.Grant, t Terms) {
	id := ID{Key: g.Key, Owner: g.Owner}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.entries[id] != nil {
		return
	}
	e := k.add(id, t.normal(g.TTL))
	e.grant, e.unanswered = g, true
	k.pending++
	k.enter(e, PhaseHeld)
	k.place(e)
}

func (k *Keeper) add(id ID, t Terms) *entry {
	e := &entry{id: id, terms: t, factor: leastFactor + (1-leastFactor)*k.o.Random(), due: time.Now()}
	k.entries[id] = e
	return e
}

// Retime follows changed terms: the next renewal is sent at once and asks for the new ttl. Without
// shorten it only ever extends what the store has. With it, the grant is first cut to the new ttl
// here and then in the store, until that has answered; nothing that was sent before lengthens it
// again. Given again with the same terms it is ignored.
func (k *Keeper) Retime(id ID, t Terms, shorten bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	if e == nil || e.phase != PhaseWaiting && e.phase != PhaseHeld {
		return
	}
	t = t.normal(e.terms.TTL)
	if t == e.terms && (!shorten || e.shortenedTo == t.TTL) {
		return
	}
	e.terms, e.shorten, e.shortenedTo = t, shorten, 0
	if shorten {
		e.shortenedTo = t.TTL
	}
	if e.phase == PhaseWaiting {
		e.asking.request.TTL = t.TTL
		return
	}
	k.retime(e, time.Now())
}

// retime has a held entry renewed at once.
func (k *Keeper) retime(e *entry, now time.Time) {
	if e.shorten {
		e.grant.ValidUntil = earlier(e.grant.ValidUntil, lock.ValidUntil(now, e.terms.TTL))
	}
	e.due, e.again = now, e.renewing
	k.place(e)
}

// Release gives a key back, and ends an entry that waits for one. Renewals end with the order; the
// release is repeated until the store answers or the key has run out by itself. That the key was no
// longer ours is as good as released.
func (k *Keeper) Release(id ID, how lock.Leave) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	switch {
	case e == nil:
	case e.phase == PhaseReleasing:
		e.leaving.how = how
	case e.ending():
	default:
		k.leave(e, PhaseReleasing, how, 0)
	}
}

// Abandon calls an attempt off. What it may have left in the store is removed; this is repeated
// until the store answers or the key has run out by itself. A grant that came meanwhile is given
// back as well.
func (k *Keeper) Abandon(id ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[id]; e != nil && !e.ending() {
		k.leave(e, PhaseAbandoning, lock.Leave{}, 0)
	}
}

// AbandonFor is Abandon also for an owner that this keeper does not know, such as one that a dead
// process left in the store. Ttl is how long its key may live.
func (k *Keeper) AbandonFor(id ID, ttl time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	if e == nil {
		e = k.add(id, Terms{}.normal(ttl))
		e.asking = &asking{doubtful: true}
	}
	if !e.ending() {
		k.leave(e, PhaseAbandoning, lock.Leave{}, ttl)
	}
}

// Forget drops an entry and leaves the store alone.
func (k *Keeper) Forget(id ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	if e == nil {
		return
	}
	k.enter(e, "")
	lift(e)
	delete(k.entries, id)
	k.news.drop(id)
}

// ending reports whether nothing but Forget does anything to the entry any more.
func (e *entry) ending() bool {
	switch e.phase {
	case PhaseReleasing, PhaseReleased, PhaseAbandoning, PhaseAbandoned:
		return true
	}
	return false
}

// leave begins to give back. What is known to have left nothing in the store ends at once.
func (k *Keeper) leave(e *entry, p Phase, how lock.Leave, ttl time.Duration) {
	now := time.Now()
	k.enter(e, p)
	e.leaving = &leaving{how: how, until: now.Add(max(e.longestLife(), ttl+lock.Drift(ttl)))}
	e.due = now
	if _, calling := k.calling[e.id]; !calling && !e.mayBeStored() {
		k.finish(e)
		return
	}
	k.place(e)
}

// mayBeStored reports whether the store may have something of this entry.
func (e *entry) mayBeStored() bool {
	return e.grant.Token != "" || e.asking != nil && (e.asking.doubtful || e.asking.request.Queue)
}

// finish ends an entry that was given back.
func (k *Keeper) finish(e *entry) {
	p := PhaseReleased
	if e.phase == PhaseAbandoning {
		p = PhaseAbandoned
	}
	lift(e)
	k.enter(e, p)
	e.leaving, e.asking = nil, nil
	k.news.add(e.id, true)
}
