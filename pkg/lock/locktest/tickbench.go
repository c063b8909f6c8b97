package locktest

import (
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// ticker is a bench whose backend keeps ticks, and the minute that it is about.
type ticker struct {
	*bench
	lock.Stamper
	minute int64
}

// ticking makes a clause of one about ticks. A backend that keeps none must say so.
func ticking(test func(*ticker)) func(*bench) {
	return func(b *bench) {
		s, ok := b.Backend.(lock.Stamper)
		minute := lock.TickMinute(time.Now()) - 10
		if !ok {
			if _, err := b.Backend.Acquire(b.Context(), with(ann, func(r *lock.Request) { r.Key = key.At(minute) })); !errors.Is(err, lock.ErrUnsupported) {
				b.Fatalf("a tick without stamps: %v", err)
			}
			return
		}
		test(&ticker{bench: b, Stamper: s, minute: minute})
	}
}

// of asks for the tick so many minutes later than the first.
func (t *ticker) of(o lock.Owner, later int64) lock.Request {
	return with(o, func(r *lock.Request) { r.Key = key.At(t.minute + later) })
}

func (t *ticker) ordered(o lock.Owner, later int64) lock.Request {
	r := t.of(o, later)
	r.Ordered = true
	return r
}

// claim must be granted.
func (t *ticker) claim(r lock.Request) lock.Grant {
	t.Helper()
	g := t.acquire(r).Grant
	if g.Stage != lock.StageClaimed || g.Key != r.Key || g.Owner != r.Owner {
		t.Fatalf("claimed %+v", g)
	}
	return g
}

// stamp must bring the tick to the stage.
func (t *ticker) stamp(g lock.Grant, s lock.Stage) lock.Grant {
	t.Helper()
	stamped, err := t.Stamp(t.Context(), g, s)
	if err != nil || stamped.Stage != s || stamped.FencingToken != g.FencingToken || stamped.Owner != g.Owner {
		t.Fatalf("stamp %s on %s: %+v, %v", s, g.Token, stamped, err)
	}
	t.validFor(stamped, g.TTL)
	return stamped
}

// started claims the tick and stamps it.
func (t *ticker) started(r lock.Request) lock.Grant {
	t.Helper()
	return t.stamp(t.claim(r), lock.StageStarted)
}

// at must be where the tick stands, under the owner and number of the grant.
func (t *ticker) at(g lock.Grant, s lock.Stage) lock.View {
	t.Helper()
	v := t.look(g.Key)
	if v.State != lock.ViewHeld || v.Stage != s || v.Owner != g.Owner || v.FencingToken != g.FencingToken {
		t.Fatalf("%s stands as %+v, want %s of %s", g.Key, v, s, g.Token)
	}
	return v
}

// vacant must be what the tick is.
func (t *ticker) vacant(k lock.Key) {
	t.Helper()
	if v := t.look(k); v.State != lock.ViewFree || v.Stage != "" || v.Owner != "" {
		t.Fatalf("%s is not free: %+v", k, v)
	}
}

// notStamped must be lost.
func (t *ticker) notStamped(g lock.Grant, s lock.Stage) lock.View {
	t.Helper()
	_, err := t.Stamp(t.Context(), g, s)
	return t.lost(err, g.Token)
}

// tooOld must be the answer, for the reason.
func (t *ticker) tooOld(err error, why lock.TooOld) lock.View {
	t.Helper()
	var old *lock.TooOldError
	if !errors.Is(err, lock.ErrTooOld) || !errors.As(err, &old) || old.Why != why {
		t.Fatalf("error %v; want too old for %s", err, why)
	}
	return old.Seen
}

// refusedAsOld must not be granted.
func (t *ticker) refusedAsOld(r lock.Request, why lock.TooOld) lock.View {
	t.Helper()
	_, err := t.Backend.Acquire(t.Context(), r)
	return t.tooOld(err, why)
}

// kept must be the answer to giving the tick back.
func (t *ticker) kept(g lock.Grant, how lock.Leave) {
	t.Helper()
	if err := t.Backend.Release(t.Context(), g, how); !errors.Is(err, lock.ErrStarted) {
		t.Fatalf("release %s: %v, want that it was started", g.Token, err)
	}
}
