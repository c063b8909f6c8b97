package memory

import (
	"strconv"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// entry is all that the store has for one key.
type entry struct {
	key   lock.Key
	value *value
	fence fence
	last  *tenure
	// awaited is the home of the contender of another home that was refused last.
	awaited      string
	awaitedUntil time.Time
	// book is what the ticks of a plain key share.
	book book
	// back is the owner and fencing token that a tick was last given back under.
	back      lock.Token
	backUntil time.Time
	// taken is the fencing token of the start that a tick was last taken over from.
	taken      lock.FencingToken
	takenUntil time.Time
}

// stringKind is the kind of all values in our form.
const stringKind = "string"

// value stands under the key itself.
type value struct {
	owner    lock.Owner // empty for a foreign value
	fence    lock.FencingToken
	stage    lock.Stage // of a tick
	released bool
	kind     string
	expires  time.Time // zero: never
}

// fence is the highest fencing token, as the text that stands in the store.
type fence struct {
	text    string
	expires time.Time
}

// tenure is the newest acquisition. An owner that is empty means that only a foreign holder was seen.
type tenure struct {
	owner      lock.Owner
	fence      lock.FencingToken
	validUntil time.Time
	ended      leaving
	foreign    bool
	notBefore  time.Time
	settles    lock.Owner
	before     lock.Ending
	prev       lock.Token // the tenure before, if it was given back
	continued  bool
	expires    time.Time
}

// leaving is how a tenure was given back, empty while it was not.
type leaving string

const (
	clean   leaving = "clean"
	unclean leaving = "unclean"
)

func (e *entry) expire(now time.Time) {
	if e.value != nil && !e.value.expires.IsZero() && !now.Before(e.value.expires) {
		e.value = nil
	}
	if e.fence.text != "" && !now.Before(e.fence.expires) {
		e.fence = fence{}
	}
	if e.last != nil && !now.Before(e.last.expires) {
		e.last = nil
	}
	if !now.Before(e.awaitedUntil) {
		e.awaited = ""
	}
	if !now.Before(e.backUntil) {
		e.back = ""
	}
	if !now.Before(e.takenUntil) {
		e.taken = 0
	}
	e.book.expire(now)
}

// past is the newest acquisition, or an empty one.
func (e *entry) past() tenure {
	if e.last == nil {
		return tenure{before: lock.EndedNone}
	}
	return *e.last
}

func (e *entry) state() lock.ViewState {
	switch v := e.value; {
	case v == nil:
		return lock.ViewFree
	case v.owner == "" || v.expires.IsZero():
		return lock.ViewForeign
	case v.released:
		return lock.ViewReleased
	default:
		return lock.ViewHeld
	}
}

// bears reports whether the key has a value of this owner, with or without expiry.
func (e *entry) bears(o lock.Owner) bool {
	return e.value != nil && !e.value.released && e.value.owner == o
}

func (e *entry) bearsToken(t lock.Token) bool {
	return e.value != nil && !e.value.released && e.value.owner != "" && e.value.token() == t
}

func (v *value) token() lock.Token     { return newToken(v.owner, v.fence, v.stage) }
func (t tenure) token() lock.Token     { return plainToken(t.owner, t.fence) }
func (t tenure) handedBack() bool      { return t.ended != "" }
func (t tenure) running(e *entry) bool { return e.bearsToken(t.token()) }

// highestMeant is the highest fencing token that can be meant.
func highestMeant(now time.Time) lock.FencingToken {
	return min(lock.FencingToken(now.Add(ahead).UnixMilli()), maxFence)
}

// highest is the highest fencing token that counts, and the text of one that does not.
func (e *entry) highest(now time.Time) (lock.FencingToken, string) {
	limit := highestMeant(now)
	last := e.past().fence
	ignored := ""
	if last > limit {
		last, ignored = 0, strconv.FormatInt(int64(last), 10)
	}
	stored, err := strconv.ParseInt(e.fence.text, 10, 64)
	if e.fence.text != "" && (err != nil || stored < 0 || lock.FencingToken(stored) > limit) {
		stored, ignored = 0, e.fence.text
	}
	return max(lock.FencingToken(stored), last), ignored
}

// ending is how the newest tenure ended, None if it runs or there was none.
func (e *entry) ending() lock.Ending {
	switch last := e.past(); {
	case last.foreign:
		return lock.EndedForeign
	case last.owner == "" || last.running(e):
		return lock.EndedNone
	case last.ended == clean:
		return lock.EndedReleased
	default:
		return lock.EndedUnreleased
	}
}

// view is what Inspect and refusals show.
func (e *entry) view(now time.Time) lock.View {
	highest, _ := e.highest(now)
	v := lock.View{Key: e.key, State: e.state(), Highest: highest, Last: e.past().owner, LastEnded: e.ending()}
	if e.value == nil {
		return v
	}
	v.Type = e.value.kind
	if e.value.expires.IsZero() {
		v.NoExpiry = true
	} else {
		v.Remaining = e.value.expires.Sub(now)
	}
	if v.State != lock.ViewForeign {
		v.Owner, v.Token, v.FencingToken = e.value.owner, e.value.token(), e.value.fence
	}
	return v
}

// refusal is the view that ends somebody's hopes. A foreign holder is noted down, for whoever comes after it.
func (e *entry) refusal(now time.Time) lock.View {
	if e.state() == lock.ViewForeign {
		last := e.past()
		last.foreign, last.expires = true, now.Add(remember)
		e.last = &last
	}
	return e.view(now)
}

// extend gives the value a ttl; the remaining time shrinks only if that was asked for. It also mends the helpers.
func (e *entry) extend(now time.Time, ttl time.Duration, shorten bool) {
	if until := now.Add(ttl); shorten || e.value.expires.IsZero() || e.value.expires.Before(until) {
		e.value.expires = until
	}
	if e.fence.text == "" {
		e.fence.text = strconv.FormatInt(int64(e.value.fence), 10)
	}
	e.fence.expires = now.Add(remember)
	last := e.past()
	if last.owner == "" {
		last.owner, last.fence = e.value.owner, e.value.fence
	}
	last.validUntil, last.foreign, last.expires = e.value.expires, false, now.Add(remember)
	e.last = &last
}
