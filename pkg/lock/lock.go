package lock

import (
	"context"
	"time"
)

// FencingToken orders the acquisitions of one key: a later one is always higher. It is about the
// store's time in milliseconds (1.8e12), so keep it in 64 bits. Zero means none.
type FencingToken int64

// Token is what stands in the store while a lock is held. It is an identity, not a secret, and
// opaque outside the backend that made it.
type Token string

// Grant is one acquisition of a key. It is an immutable value: a renewal yields another one.
type Grant struct {
	Key          Key
	Owner        Owner
	Token        Token
	FencingToken FencingToken
	// TTL is what the store was last asked for.
	TTL time.Duration
	// ValidUntil is when this side must have stopped counting on the grant. It carries Go's
	// monotonic clock. The zero time means that no answer of the store backs the grant yet.
	ValidUntil time.Time
	// Stage repeats what the token of a tick says. Where the two differ, the token counts.
	Stage Stage
	// Ordered is the request's: a tick is not started once a newer one of the key was.
	Ordered bool
}

// Valid reports whether the grant may be counted on at now.
func (g Grant) Valid(now time.Time) bool { return now.Before(g.ValidUntil) }

// Request asks for a key.
type Request struct {
	Key   Key
	Owner Owner
	TTL   time.Duration
	// Floor is the lowest fencing token that is acceptable: the highest one the caller ever saw,
	// plus one. Zero where it saw none.
	Floor FencingToken
	// Settle says how long a start must wait after a tenure that did not end cleanly.
	Settle Settle
	// Since, if set, makes this the continuation of a tenure whose key vanished: it is granted only
	// if nobody acquired the key after this fencing token, and nothing is settled. A tick has none.
	Since FencingToken
	// Queue asks for a place in the store's queue. A backend that has none answers ErrUnsupported.
	Queue bool
	// Ordered, for a tick, asks for it only as long as no newer tick of the key was started.
	Ordered bool
	// Retry, for a tick, asks for it also where it was started and has no outcome, if nobody holds the plain key
	// of the same name: whoever started it under that key has lost it, or is gone.
	Retry bool
}

// Settle describes the wait between acquiring a key and starting, where the tenure before was not
// ended cleanly and its holder may still run.
type Settle struct {
	// Delay is added to the end of that tenure; zero means that nothing is ever settled.
	Delay time.Duration
	// Home is the prefix of owners whose end the caller confirms by itself; their tenures need no
	// settling. Empty where there are none. It also tells a holder of another home that somebody
	// waits: see Result.Awaited.
	Home string
}

// Acquired is the answer to a request that was granted.
type Acquired struct {
	Grant Grant
	// Again is true where this owner already had the key, as after an answer that was lost.
	Again bool
	// Before tells how the tenure before this one ended.
	Before Ending
	// StartAfter is how long the caller must still wait before it starts anything, counted from
	// the moment the answer arrived.
	StartAfter time.Duration
	// Warning is a sentence about something the backend ignored, such as a stored fencing token
	// from the future. Usually empty.
	Warning string
}

// Ending says how a tenure ended, as far as the store knows.
type Ending string

const (
	// EndedNone: the store and the caller know of no earlier tenure.
	EndedNone Ending = "None"
	// EndedReleased: the holder was confirmed to have stopped and gave the key back.
	EndedReleased Ending = "Released"
	// EndedUnreleased: the key ran out, was removed by hand, or was given back unconfirmed.
	EndedUnreleased Ending = "Unreleased"
	// EndedForgotten: the store knows less than the caller, so it lost data.
	EndedForgotten Ending = "Forgotten"
	// EndedForeign: a holder that is no conch had the key.
	EndedForeign Ending = "Foreign"
)

// Extension asks for a grant to be renewed to a ttl.
type Extension struct {
	Grant Grant
	TTL   time.Duration
	// Shorten allows the remaining time to shrink. Without it a renewal only ever extends.
	Shorten bool
	// Stage, for a tick, is the stage to bring it to on the way, as Stamper.Stamp does. Empty where it
	// is to stay as it is.
	Stage Stage
}

// Result is the answer to one Extension: Grant with a new ValidUntil, or an error that is ErrLost or
// ErrUnknown; for an Extension with a Stage also ErrTooOld, which leaves the claim as it was.
type Result struct {
	Grant Grant
	Err   error
	// Awaited is true where a contender of another home than the holder's was refused within the last
	// AwaitedFor. It is not told of ticks.
	Awaited bool
}

// AwaitedFor is how long a contender that was refused counts as waiting. Contenders that retry
// less often than that are seen now and then only.
const AwaitedFor = 10 * time.Second

// Leave says how a key is given back.
type Leave struct {
	// Unclean states that the holder was not confirmed to have stopped. The next one settles.
	Unclean bool
	// Keep leaves a released marker for this long, so that nobody acquires the key before. A tick
	// cannot be kept.
	Keep time.Duration
	// PutBack states that nothing of a tick that was started runs or will run, so that another one may
	// run it. It means nothing for a plain key.
	PutBack bool
}

// Backend is a store of locks. At most one of Acquire, Abandon and Release per key and owner may
// run at a time; everything else may run concurrently. Implementations bound each call themselves
// and return early when ctx ends.
type Backend interface {
	// Acquire takes the key for the owner. Sending the same request again is harmless. The error is
	// ErrHeld (as *HeldError, with what was seen), ErrLost (only with Since), ErrTooOld (only for a
	// tick), ErrUnsupported, ErrInvalid, or ErrUnknown; after ErrUnknown the caller asks again as the
	// same owner, or abandons.
	Acquire(ctx context.Context, r Request) (Acquired, error)
	// Renew extends grants, one result each in the same order. It never creates a key, save the record
	// of a tick whose grant says that it was started.
	Renew(ctx context.Context, extensions []Extension) []Result
	// Release gives the grant's key back if it still bears the whole token. The error is ErrLost
	// where it does not, and nil where this token had been released before. A tick that was started is
	// given back with Leave.PutBack only, else the error is ErrStarted; one that is over stays, and the
	// error is nil.
	Release(ctx context.Context, g Grant, how Leave) error
	// Abandon removes what an unanswered Acquire of this owner may have left behind. It compares
	// the owner; a key that bears another one, or a tick that was started, is left alone, and nil
	// returned.
	Abandon(ctx context.Context, key Key, owner Owner) error
	// Inspect reports what stands in the store now, one view a key in the same order.
	Inspect(ctx context.Context, keys []Key) ([]View, error)
}

// Notifier is a Backend that hints at releases. Hints may be lost, so nobody relies on them.
type Notifier interface {
	// Notify calls hint for each key that was given back, until ctx ends. After a gap in which
	// hints may have been lost it calls missed. It returns nil once ctx has ended.
	Notify(ctx context.Context, hint func(Key), missed func()) error
}

// Describer is a Backend that can say what it runs on.
type Describer interface {
	Describe(ctx context.Context) (Facts, error)
}

// Facts are what a backend knows about its server.
type Facts struct {
	Server string // product and version
	Role   string // master or replica
	RunID  string // identity of the server process
	// Started is how long ago the server process began, rounded down. A backend without a server has zero.
	Started time.Duration
}

// Announcer is a Backend in which a cluster's decider writes down who it is, so that two clusters
// with one identity notice each other.
type Announcer interface {
	// Announce writes nonce under id if takeover is set or nothing stands there, and returns what
	// stands there afterwards.
	Announce(ctx context.Context, id, nonce string, takeover bool) (string, error)
}

// View is what stands in the store under a key.
type View struct {
	Key   Key
	State ViewState
	// Owner, Token and FencingToken describe the holder; empty for a free or foreign key.
	Owner        Owner
	Token        Token
	FencingToken FencingToken
	// Remaining is the rest of the key's time to live. NoExpiry is true where it has none.
	Remaining time.Duration
	NoExpiry  bool
	// Type is the store's type of the key, such as string or hash.
	Type string
	// Highest is the highest fencing token the store remembers for the key, zero if none.
	Highest FencingToken
	// Last is the owner of the newest acquisition, and LastEnded how it ended. Not told of ticks.
	Last      Owner
	LastEnded Ending
	// Stage is how far a tick that is held has come.
	Stage Stage
	// Newest is, for a tick, the newest one of its key that is known to have been started; zero if none.
	Newest int64
}

// ViewState classifies a key.
type ViewState string

const (
	// ViewFree: nobody has the key.
	ViewFree ViewState = "Free"
	// ViewHeld: an owner in conch's form has it.
	ViewHeld ViewState = "Held"
	// ViewForeign: something else has it: another program, a key of another type or without expiry.
	ViewForeign ViewState = "Foreign"
	// ViewReleased: given back, but kept for its minimum hold.
	ViewReleased ViewState = "Released"
)
