package locktest

import (
	"errors"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	ttl   = time.Minute
	delay = 20 * time.Second
	// slack is what real time may add between two steps of a test.
	slack = 5 * time.Second
)

// Three owners in two homes.
const (
	ann  = lock.Owner("home/ns/pod/ann/1/a")
	bob  = lock.Owner("home/ns/pod/bob/2/b")
	cleo = lock.Owner("away/ns/pod/cleo/3/c")
)

var (
	key    = lock.Key{Name: "set/ns/{job} 100%"}
	rawKey = lock.Key{Name: "someone's key: {100%}", Raw: true}

	// settled is what a contender of home asks for, and afar one of another cluster.
	settled = lock.Settle{Delay: delay, Home: "home/"}
	afar    = lock.Settle{Delay: delay, Home: "away/"}
)

// bench runs single steps and fails the test where they do not do what they must.
type bench struct {
	*testing.T
	Harness
}

func request(o lock.Owner) lock.Request { return lock.Request{Key: key, Owner: o, TTL: ttl} }

// with returns the request with changes.
func with(o lock.Owner, change func(*lock.Request)) lock.Request {
	r := request(o)
	change(&r)
	return r
}

func settling(o lock.Owner, s lock.Settle) lock.Request {
	return with(o, func(r *lock.Request) { r.Settle = s })
}

// acquire must be granted.
func (b *bench) acquire(r lock.Request) lock.Acquired {
	b.Helper()
	a, err := b.Backend.Acquire(b.Context(), r)
	if err != nil {
		b.Fatalf("acquire as %s: %v", r.Owner, err)
	}
	return a
}

// refused must not be granted because somebody else has it.
func (b *bench) refused(r lock.Request) lock.View {
	b.Helper()
	a, err := b.Backend.Acquire(b.Context(), r)
	var held *lock.HeldError
	if !errors.Is(err, lock.ErrHeld) || !errors.As(err, &held) {
		b.Fatalf("acquire as %s: %+v, %v; want a HeldError", r.Owner, a, err)
	}
	return held.Seen
}

// renew sends one extension.
func (b *bench) renew(x lock.Extension) lock.Result {
	b.Helper()
	results := b.Backend.Renew(b.Context(), []lock.Extension{x})
	if len(results) != 1 {
		b.Fatalf("renew: %d results for one extension", len(results))
	}
	return results[0]
}

// renewed must succeed.
func (b *bench) renewed(g lock.Grant, d time.Duration) lock.Grant {
	b.Helper()
	r := b.renew(lock.Extension{Grant: g, TTL: d})
	if r.Err != nil {
		b.Fatalf("renew: %v", r.Err)
	}
	return r.Grant
}

func (b *bench) release(g lock.Grant, how lock.Leave) {
	b.Helper()
	if err := b.Backend.Release(b.Context(), g, how); err != nil {
		b.Fatalf("release: %v", err)
	}
}

func (b *bench) abandon(o lock.Owner) {
	b.Helper()
	if err := b.Backend.Abandon(b.Context(), key, o); err != nil {
		b.Fatalf("abandon: %v", err)
	}
}

func (b *bench) view() lock.View {
	b.Helper()
	return b.look(key)
}

func (b *bench) look(k lock.Key) lock.View {
	b.Helper()
	views, err := b.Backend.Inspect(b.Context(), []lock.Key{k})
	if err != nil || len(views) != 1 {
		b.Fatalf("inspect: %v, %v", views, err)
	}
	return views[0]
}

// free must be what stands under the key.
func (b *bench) free() {
	b.Helper()
	if v := b.view(); v.State != lock.ViewFree {
		b.Fatalf("the key is not free: %+v", v)
	}
}

// heldBy must be what stands under the key.
func (b *bench) heldBy(g lock.Grant) lock.View {
	b.Helper()
	v := b.view()
	if v.State != lock.ViewHeld || v.Token != g.Token {
		b.Fatalf("the key is not held by %s: %+v", g.Token, v)
	}
	return v
}

// lost must be what the error says, and what it saw is returned.
func (b *bench) lost(err error, token lock.Token) lock.View {
	b.Helper()
	var lost *lock.LostError
	if !errors.Is(err, lock.ErrLost) || !errors.As(err, &lost) || lost.Token != token {
		b.Fatalf("error %v; want a LostError about %s", err, token)
	}
	return lost.Seen
}

// ended must be how the tenure before ended, and wait how long the start must be put off, give or take the time the test takes.
func (b *bench) ended(a lock.Acquired, how lock.Ending, wait time.Duration) {
	b.Helper()
	if a.Before != how {
		b.Fatalf("the tenure before ended %q, want %q", a.Before, how)
	}
	b.about("wait", a.StartAfter, wait)
}

// about accepts what real time may have taken off.
func (b *bench) about(what string, got, want time.Duration) {
	b.Helper()
	if got > want+time.Millisecond || got < max(0, want-slack) {
		b.Fatalf("%s is %s, want about %s", what, got, want)
	}
}

// validFor must be the length of a lease, less the drift.
func (b *bench) validFor(g lock.Grant, d time.Duration) {
	b.Helper()
	b.about("validity", g.ValidUntil.Sub(b.Now()), d-lock.Drift(d))
	if g.TTL != d {
		b.Fatalf("the grant's ttl is %s, want %s", g.TTL, d)
	}
}
