package keeper

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// entry is what the keeper knows about one ID. All of it is guarded by the keeper's mutex. What
// only some phases need is kept apart, so that a held lock is small.
type entry struct {
	id    ID
	phase Phase
	terms Terms
	grant lock.Grant

	answer  *answer  // of the acquire; nil for an adopted grant
	asking  *asking  // while Waiting, and after that until it is known to be out of the store
	leaving *leaving // while Releasing or Abandoning
	trouble *trouble // nil while there is none
	// stamping is nil but for a tick that an order is out for or was refused to.
	stamping *stamping

	renewedAt time.Time
	// factor times RenewInterval is the time between two renewals, different for every entry.
	factor float64
	// pause is how long the newest retry of a renewal waited; zero after a success.
	pause time.Duration
	// shorten is set until a renewal that may shorten the grant has succeeded, and shortenedTo is
	// the ttl that this was last ordered for.
	shorten     bool
	shortenedTo time.Duration
	// renewing is true while a renewal is under way, and again asks for another one after it.
	renewing, again bool
	// unanswered is true for an adopted grant until the store said anything about it.
	unanswered bool
	// awaited is what the newest renewal told.
	awaited bool

	due  time.Time
	pile *pile
	slot int
}

// answer is what the store said when it granted the key.
type answer struct {
	acquired lock.Acquired // without its Grant
	at       time.Time
}

type asking struct {
	request lock.Request
	// sent is when the newest attempt was sent; zero before the first.
	sent  time.Time
	pause time.Duration
	// doubtful is true once something of ours may be in the store.
	doubtful bool
	// hinted is true if a hint came while an attempt was under way, which may have been too early.
	hinted bool
}

type leaving struct {
	how   lock.Leave
	pause time.Duration
	// until is when the key has run out by itself, if it was ours at all.
	until time.Time
}

type trouble struct {
	err   error
	since time.Time
	seen  lock.View
}

func (e *entry) state() State {
	s := State{ID: e.id, Phase: e.phase, Terms: e.terms, RenewedAt: e.renewedAt}
	if e.answer != nil {
		s.Acquired, s.GrantedAt = e.answer.acquired, e.answer.at
	}
	s.Acquired.Grant = e.grant
	s.Stage, s.Stamping, s.Awaited = e.grant.Stage, e.wanted(), e.awaited
	if e.stamping != nil {
		s.StampErr = e.stamping.err
	}
	if t := e.trouble; t != nil {
		s.Err, s.ErrSince, s.Seen = t.err, t.since, t.seen
	}
	return s
}

// fail notes an error and reports whether somebody should look: a row of missing answers began or
// changed its reason, or another holder is seen.
func (e *entry) fail(err error, unknown bool, sent time.Time, seen *lock.View) bool {
	before := trouble{}
	if e.trouble != nil {
		before = *e.trouble
	}
	now := trouble{err: err, seen: before.seen}
	if seen != nil {
		now.seen = *seen
	}
	if unknown {
		now.since = before.since
		if now.since.IsZero() {
			now.since = sent
		}
	}
	e.trouble = &now
	return before.since.IsZero() != now.since.IsZero() || !sameHolder(before.seen, now.seen) ||
		before.err == nil || lock.ReasonOf(before.err) != lock.ReasonOf(err) || isTooOld(before.err) != isTooOld(err)
}

// recover forgets all trouble and reports whether a row of missing answers ended.
func (e *entry) recover() bool {
	t := e.trouble
	e.trouble, e.pause = nil, 0
	return t != nil && !t.since.IsZero()
}

// sameHolder ignores what changes with time alone.
func sameHolder(a, b lock.View) bool {
	a.Remaining, b.Remaining = 0, 0
	return a == b
}

// longestLife is how long the key may live in the store after anything was sent about it.
func (e *entry) longestLife() time.Duration {
	if e.grant.Stage.Begun() || e.wanted() != "" {
		return lock.TickRetention
	}
	ttl := max(e.terms.TTL, e.grant.TTL)
	if e.asking != nil {
		ttl = max(ttl, e.asking.request.TTL)
	}
	return ttl + lock.Drift(ttl)
}

// normal fills what terms lack from the ttl that was asked for with them.
func (t Terms) normal(ttl time.Duration) Terms {
	if t.TTL <= 0 {
		t.TTL = ttl
	}
	if t.RenewInterval <= 0 {
		t.RenewInterval = lock.Timing{TTL: t.TTL}.WithDefaults().RenewInterval
	}
	return t
}
