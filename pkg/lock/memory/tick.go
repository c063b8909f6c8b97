package memory

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	// maxBook bounds how many started ticks of one key are told apart by minute. It is as many put backs as may come in a row.
	maxBook = 32
	// tickAhead bounds how far ahead of the clock a started tick may be to count as the newest.
	tickAhead = lock.MaxTickAge
)

// book is what the ticks of one key share, and what those of one series do.
type book struct {
	fence   fence
	started []int64 // minutes of a series, newest first
	expires time.Time
	// settling is until when nobody starts a tick, because data was lost.
	settling time.Time
}

// tick is one tick of a key and what it shares with the others.
type tick struct {
	*entry
	plain, series *entry
	now           time.Time
}

// tick returns what is stored for a tick. The mutex must be held.
func (b *Backend) tick(k lock.Key) tick {
	plain, _ := b.entry(k.Plain())
	series, _ := b.entry(k.At(0))
	e, now := b.entry(k)
	return tick{entry: e, plain: plain, series: series, now: now}
}

func (b *book) expire(now time.Time) {
	if b.fence.text != "" && !now.Before(b.fence.expires) {
		b.fence = fence{}
	}
	if !now.Before(b.expires) {
		b.started = nil
	}
}

// highest is the highest fencing token of any tick.
func (b *book) highest(now time.Time) lock.FencingToken {
	stored, err := strconv.ParseInt(b.fence.text, 10, 64)
	if err != nil || stored < 0 || lock.FencingToken(stored) > highestMeant(now) {
		return 0
	}
	return lock.FencingToken(stored)
}

func (t tick) newest() int64 {
	for _, minute := range t.series.book.started {
		if minute <= lock.TickMinute(t.now.Add(tickAhead)) {
			return minute
		}
	}
	return 0
}

func (t tick) view() lock.View {
	v := t.entry.view(t.now)
	v.Highest, v.Last, v.LastEnded = t.plain.book.highest(t.now), "", lock.EndedNone
	v.Newest = t.newest()
	if v.State == lock.ViewHeld {
		v.Stage = t.value.stage
	}
	return v
}

// begun reports whether the record says that somebody started the tick.
func (t tick) begun() bool { return t.state() == lock.ViewHeld && t.value.stage.Begun() }

// forsaken reports whether the tick was started and is nobody's any more: the plain key that it ran under is free, and was not lost with
// other data just now.
func (t tick) forsaken() bool {
	return t.state() == lock.ViewHeld && t.value.stage == lock.StageStarted && t.plain.value == nil && !t.now.Before(t.plain.book.settling)
}

// tooOld says why a tick that is not ours may not be run by anybody, empty if it may.
func (t tick) tooOld(ordered, again bool) lock.TooOld {
	book := t.series.book.started
	switch {
	case t.now.Sub(time.Unix(60*t.key.Tick, 0)) > lock.MaxTickAge:
		return lock.TooOldAge
	case slices.Contains(book, t.key.Tick) && !again, ordered && t.newest() > t.key.Tick:
		return lock.TooOldSuperseded
	}
	return ""
}

func (t tick) acquire(r lock.Request) (lock.Acquired, error) {
	if t.bears(r.Owner) {
		t.prolong(r.TTL, false)
		return t.acquired(r, true), nil
	}
	forsaken := r.Retry && t.forsaken()
	why := t.tooOld(r.Ordered, forsaken || t.taken > 0)
	if why != "" && (why == lock.TooOldAge || !t.begun() || forsaken) {
		return lock.Acquired{}, &lock.TooOldError{Key: r.Key, Why: why, Seen: t.view()}
	}
	if t.value != nil && !forsaken {
		return lock.Acquired{}, &lock.HeldError{Key: r.Key, Seen: t.view()}
	}
	plain, _ := t.plain.highest(t.now)
	if max(t.plain.book.highest(t.now), plain) < r.Floor-1 {
		t.plain.book.settling = later(t.plain.book.settling, t.now.Add(r.TTL+r.Settle.Delay))
	}
	number := max(t.plain.book.highest(t.now)+1, plain+1, r.Floor, lock.FencingToken(t.now.UnixMilli()))
	t.number(number)
	if forsaken {
		t.entry.taken, t.entry.takenUntil = t.value.fence, t.now.Add(lock.TickRetention)
	}
	t.entry.value = &value{owner: r.Owner, fence: number, stage: lock.StageClaimed, kind: stringKind, expires: t.now.Add(r.TTL)}
	return t.acquired(r, false), nil
}

// acquired is the answer to a claim. Where data was lost, a tick that was started may be missing with it, and whoever runs one gets the
// time to make its record again.
func (t tick) acquired(r lock.Request, again bool) lock.Acquired {
	a := lock.Acquired{Grant: t.grant(r), Again: again, Before: lock.EndedNone}
	left := t.plain.book.settling.Sub(t.now)
	if left <= 0 {
		return a
	}
	a.Before = lock.EndedForgotten
	if r.Settle.Delay > 0 {
		a.StartAfter = left
	}
	return a
}

// grant is what stands, as a grant.
func (t tick) grant(r lock.Request) lock.Grant {
	v := t.value
	return lock.Grant{
		Key: r.Key, Owner: v.owner, Token: v.token(), FencingToken: v.fence, TTL: r.TTL, Stage: v.stage, Ordered: r.Ordered,
	}
}

// number notes the fencing token of a tick down.
func (t tick) number(n lock.FencingToken) {
	b := &t.plain.book
	b.fence.text = strconv.FormatInt(int64(max(n, b.highest(t.now))), 10)
	b.fence.expires = t.now.Add(remember)
}

// prolong keeps the record: a claim for the ttl, what was started for its retention.
func (t tick) prolong(ttl time.Duration, shorten bool) {
	v := t.value
	if v.stage.Begun() {
		v.expires = t.now.Add(lock.TickRetention)
		t.enrol()
		return
	}
	if until := t.now.Add(ttl); shorten || v.expires.IsZero() || v.expires.Before(until) {
		v.expires = until
	}
	t.number(v.fence)
}

// enrol writes down that the tick was started.
func (t tick) enrol() {
	b := &t.series.book
	if !slices.Contains(b.started, t.key.Tick) {
		b.started = append(b.started, t.key.Tick)
		slices.SortFunc(b.started, func(x, y int64) int { return cmp.Compare(y, x) })
		b.started = b.started[:min(len(b.started), maxBook)]
	}
	b.expires = t.now.Add(lock.TickRetention)
	t.number(t.value.fence)
}

// bearsGrant reports whether the record is of the grant's tenure, at whatever stage.
func (t tick) bearsGrant(g lock.Grant) bool {
	owner, number, _, ok := parseTickToken(g.Token)
	return ok && t.bears(owner) && t.value.fence == number
}

// stamp keeps the record of a grant and brings it to a stage, empty for the one it is at.
func (t tick) stamp(g lock.Grant, to lock.Stage, ttl time.Duration, shorten bool) (got lock.Grant, told bool, err error) {
	owner, number, from, _ := parseTickToken(g.Token)
	if to == "" {
		to = from
	}
	lost := &lock.LostError{Key: g.Key, Token: g.Token, Seen: t.view()}
	switch {
	case t.bearsGrant(g):
		if g.Ordered && !from.Begun() && t.value.stage == lock.StageClaimed && to == lock.StageStarted && t.newest() > t.key.Tick {
			return lock.Grant{}, false, &lock.TooOldError{Key: g.Key, Why: lock.TooOldSuperseded, Seen: t.view()}
		}
	case !from.Begun(), t.entry.back == plainToken(owner, number), number <= t.taken:
		return lock.Grant{}, false, lost
	case t.value == nil, t.state() == lock.ViewHeld && t.value.stage == lock.StageClaimed:
		t.entry.value = &value{owner: owner, fence: number, stage: from, kind: stringKind}
		t.plain.book.settling = later(t.plain.book.settling, t.now.Add(ttl))
	default:
		return lock.Grant{}, false, lost
	}
	v := t.value
	if v.stage.Before(from) {
		v.stage = from // the store is back at an earlier state
	}
	if v.stage.Before(to) {
		v.stage, told = to, true
	}
	t.prolong(ttl, shorten)
	got = g
	got.Token, got.Stage, got.TTL = v.token(), v.stage, ttl
	return got, told, nil
}

// release puts a tick back, or says why it is not.
func (t tick) release(g lock.Grant, how lock.Leave) (freed bool, err error) {
	owner, number, _, _ := parseTickToken(g.Token)
	switch {
	case t.bearsGrant(g):
		return t.putBack(g, how)
	case t.entry.back == plainToken(owner, number):
		return false, nil
	}
	return false, &lock.LostError{Key: g.Key, Token: g.Token, Seen: t.view()}
}

func (t tick) putBack(g lock.Grant, how lock.Leave) (freed bool, err error) {
	v := t.value
	switch {
	case v.stage.Over() && !how.PutBack:
		return false, nil
	case v.stage.Over(), v.stage.Begun() && !how.PutBack:
		return false, &lock.StartedError{Key: g.Key, Seen: t.view()}
	}
	t.free()
	if b := &t.series.book; v.stage.Begun() {
		b.started = slices.DeleteFunc(b.started, func(minute int64) bool { return minute == t.key.Tick })
	}
	return true, nil
}

// free removes the record, and notes whose it was: a stamp of that grant which is still under way makes it no more.
func (t tick) free() {
	t.entry.back, t.entry.backUntil = plainToken(t.value.owner, t.value.fence), t.now.Add(lock.TickRetention)
	t.entry.value = nil
}

// abandon removes a claim.
func (t tick) abandon(owner lock.Owner) (freed bool) {
	if !t.bears(owner) || t.value.stage.Begun() {
		return false
	}
	t.free()
	return true
}
