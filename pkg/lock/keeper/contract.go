package keeper

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// ID names one entry of a keeper. Entries are told apart by owner, and an owner has a nonce per
// attempt, so that ending one tenure never touches the next one of the same key.
type ID struct {
	Key   lock.Key
	Owner lock.Owner
}

// Terms are how a grant is kept alive.
type Terms struct {
	TTL           time.Duration
	RenewInterval time.Duration
}

// Want is an order to contend for a key until it is granted or called off.
type Want struct {
	Request lock.Request
	Terms   Terms
}

// Phase is where an entry stands.
type Phase string

const (
	// PhaseWaiting: contending; Seen or Err say why it was not granted yet.
	PhaseWaiting Phase = "Waiting"
	// PhaseHeld: granted, and renewed on schedule. The grant may have expired all the same, when the
	// store has not answered for long: look at Grant.ValidUntil.
	PhaseHeld Phase = "Held"
	// PhaseLost: the store said that the grant is no more, or the keeping of it panicked. Err is
	// ErrLost. Final.
	PhaseLost Phase = "Lost"
	// PhaseReleasing: being given back; Err says why that is not done yet. A tick that is found to be
	// started, and may not be put back, is PhaseHeld again with Err ErrStarted.
	PhaseReleasing Phase = "Releasing"
	// PhaseReleased: given back, or found to be no longer ours when it should have been. Final.
	PhaseReleased Phase = "Released"
	// PhaseAbandoning: called off while its acquire may still be in the store.
	PhaseAbandoning Phase = "Abandoning"
	// PhaseAbandoned: called off and known to be out of the store. Final.
	PhaseAbandoned Phase = "Abandoned"
)

// State is what a keeper knows about an entry: a value, never updated.
type State struct {
	ID    ID
	Phase Phase
	Terms Terms
	// Acquired is the store's answer; its Grant is the newest one. For an adopted grant that was not
	// renewed yet, Grant.ValidUntil is zero.
	Acquired lock.Acquired
	// GrantedAt is when the answer to the acquire arrived. Zero for an adopted grant.
	GrantedAt time.Time
	// Seen is the newest view of who has the key, from a refused acquire or a lost renewal.
	Seen lock.View
	// Err is the newest error; nil after a success.
	Err error
	// ErrSince is when an unbroken row of ErrUnknown began. Zero if there is none.
	ErrSince time.Time
	// RenewedAt is when the newest renewal that succeeded was sent. Zero before the first one.
	RenewedAt time.Time
	// Awaited is true where the newest renewal that was answered told that somebody of another home
	// waits for the key. See lock.Result.
	Awaited bool
	// Stage is how far the tick has come, as far as the store has told; empty for a plain key.
	Stage lock.Stage
	// Stamping is the stage that was ordered by Stamp and is not answered yet, and StampErr why: the
	// newest missing answer. After an order that was refused Stamping is empty and StampErr ErrTooOld.
	Stamping lock.Stage
	StampErr error
}

// Event tells that the state of an entry changed in a way that somebody should look at. Urgent
// ones (granted, lost, given back, stamped) go before the others (who is seen to hold, who waits,
// errors that begin or end, the first answer to an adopted grant).
type Event struct {
	ID     ID
	Urgent bool
}

// Health sums up what a keeper hears from its store.
type Health struct {
	// Answered is when the store last answered anything; zero if it never did.
	Answered time.Time
	// Err is the error of the newest call if it was ErrUnknown, and Since when that row began.
	Err   error
	Since time.Time
	// RoundDone is true while every grant that was adopted so far has had an answer, and the store
	// answered at all. It is about this moment: adopting another grant makes it false until that
	// one is answered, so a caller that asks whether it is ready asks once it has adopted all.
	RoundDone bool
}
