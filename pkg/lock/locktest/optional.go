package locktest

import (
	"context"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// soon is how long a hint may take. Nothing relies on hints, this test does.
const soon = 10 * time.Second

// listening runs Notify, and returns the hints once it is sure to hear them.
func (b *bench) listening(n lock.Notifier) <-chan lock.Key {
	ctx, cancel := context.WithCancel(context.Background())
	hints, missed, ended := make(chan lock.Key, 10), make(chan struct{}, 10), make(chan error, 1)
	go func() {
		ended <- n.Notify(ctx, func(k lock.Key) { hints <- k }, func() { missed <- struct{}{} })
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("notify: %v", err)
		}
	})
	select {
	case <-missed:
	case <-time.After(soon):
		b.Fatal("notify did not begin")
	}
	return hints
}

func (b *bench) hinted(hints <-chan lock.Key, want lock.Key) {
	b.Helper()
	select {
	case got := <-hints:
		if got != want {
			b.Fatalf("hint at %+v, want %+v", got, want)
		}
	case <-time.After(soon):
		b.Fatalf("no hint at %+v", want)
	}
}

// optionalClauses pass where the backend does not have the interface.
var optionalClauses = []clause{
	{"a release and an abandoned acquire are hinted at", func(b *bench) {
		n, ok := b.Backend.(lock.Notifier)
		if !ok {
			return
		}
		hints := b.listening(n)
		for _, k := range []lock.Key{key, rawKey} {
			r := with(ann, func(r *lock.Request) { r.Key = k })
			b.release(b.acquire(r).Grant, lock.Leave{})
			b.hinted(hints, k)
			b.acquire(r)
			if err := b.Backend.Abandon(b.Context(), k, ann); err != nil {
				b.Fatal(err)
			}
			b.hinted(hints, k)
		}
	}},
	{"a release that keeps the key, or has no effect, is not hinted at", func(b *bench) {
		n, ok := b.Backend.(lock.Notifier)
		if !ok {
			return
		}
		hints := b.listening(n)
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{Keep: ttl})
		b.release(g, lock.Leave{})
		b.abandon(bob)
		r := with(ann, func(r *lock.Request) { r.Key = rawKey })
		b.release(b.acquire(r).Grant, lock.Leave{})
		b.hinted(hints, rawKey)
	}},
	{"two clusters with one identity notice each other", func(b *bench) {
		a, ok := b.Backend.(lock.Announcer)
		if !ok {
			return
		}
		for i, step := range []struct {
			nonce    string
			takeover bool
			want     string
		}{
			{"one", false, "one"}, {"one", false, "one"}, {"two", false, "one"}, {"two", true, "two"}, {"one", false, "two"},
		} {
			if got, err := a.Announce(b.Context(), "id", step.nonce, step.takeover); err != nil || got != step.want {
				b.Fatalf("step %d: %q, %v; want %q", i, got, err, step.want)
			}
		}
		if got, err := a.Announce(b.Context(), "other", "one", false); err != nil || got != "one" {
			b.Fatalf("another id: %q, %v", got, err)
		}
	}},
	{"the server is described", func(b *bench) {
		d, ok := b.Backend.(lock.Describer)
		if !ok {
			return
		}
		if f, err := d.Describe(b.Context()); err != nil || f.Server == "" {
			b.Fatalf("%+v, %v", f, err)
		}
	}},
}
