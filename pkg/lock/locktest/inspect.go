package locktest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var inspectClauses = []clause{
	{"a key that was never held is free, and nothing is known of it", func(b *bench) {
		if v := b.view(); v != (lock.View{Key: key, State: lock.ViewFree, LastEnded: lock.EndedNone}) {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"a held key shows its holder", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		v := b.heldBy(g)
		b.about("remaining", v.Remaining, ttl)
		v.Remaining = 0
		want := lock.View{
			Key: key, State: lock.ViewHeld, Owner: ann, Token: g.Token, FencingToken: g.FencingToken, Type: "string",
			Highest: g.FencingToken, Last: ann, LastEnded: lock.EndedNone,
		}
		if v != want {
			b.Fatalf("seen %+v, want %+v", v, want)
		}
	}},
	{"a free key shows what is remembered", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{})
		if v := b.view(); v != (lock.View{Key: key, State: lock.ViewFree, Highest: g.FencingToken, Last: ann, LastEnded: lock.EndedReleased}) {
			b.Fatalf("seen %+v", v)
		}
		g = b.acquire(request(bob)).Grant
		b.Store.Delete(key)
		if v := b.view(); v != (lock.View{Key: key, State: lock.ViewFree, Highest: g.FencingToken, Last: bob, LastEnded: lock.EndedUnreleased}) {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"views come in the order of the keys", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		views, err := b.Backend.Inspect(b.Context(), []lock.Key{{Name: "a"}, key, rawKey})
		if err != nil || len(views) != 3 || views[0].Key.Name != "a" || views[1].Token != g.Token || views[2].Key != rawKey {
			b.Fatalf("%+v, %v", views, err)
		}
	}},
	{"looking changes nothing", func(b *bench) {
		b.view()
		b.ended(b.acquire(request(ann)), lock.EndedNone, 0)
	}},
}

var refuseClauses = []clause{
	{"a malformed request is invalid, and leaves nothing", func(b *bench) {
		bad := map[string]func(*lock.Request){
			"no key":         func(r *lock.Request) { r.Key = lock.Key{} },
			"a long key":     func(r *lock.Request) { r.Key.Name = strings.Repeat("x", lock.MaxKeyBytes+1) },
			"no text":        func(r *lock.Request) { r.Key.Name = "\xff" },
			"no owner":       func(r *lock.Request) { r.Owner = "" },
			"a hash":         func(r *lock.Request) { r.Owner = "a#1" },
			"a marker":       func(r *lock.Request) { r.Owner = "released/a" },
			"no ttl":         func(r *lock.Request) { r.TTL = 0 },
			"negative ttl":   func(r *lock.Request) { r.TTL = -time.Second },
			"short ttl":      func(r *lock.Request) { r.TTL = lock.MinTTL - 1 },
			"long ttl":       func(r *lock.Request) { r.TTL = lock.MaxTTL + 1 },
			"negative delay": func(r *lock.Request) { r.Settle.Delay = -1 },
			"negative floor": func(r *lock.Request) { r.Floor = -1 },
			"negative since": func(r *lock.Request) { r.Since = -1 },
		}
		for name, change := range bad {
			if _, err := b.Backend.Acquire(b.Context(), with(ann, change)); !errors.Is(err, lock.ErrInvalid) {
				b.Errorf("%s: %v", name, err)
			}
		}
		b.free()
	}},
	{"a malformed release, abandon or look is invalid", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		_, looked := b.Backend.Inspect(b.Context(), []lock.Key{{}})
		for name, err := range map[string]error{
			"no token":      b.Backend.Release(b.Context(), lock.Grant{Key: key}, lock.Leave{}),
			"no key":        b.Backend.Release(b.Context(), lock.Grant{Token: g.Token}, lock.Leave{}),
			"negative keep": b.Backend.Release(b.Context(), g, lock.Leave{Keep: -1}),
			"no owner":      b.Backend.Abandon(b.Context(), key, ""),
			"look":          looked,
		} {
			if !errors.Is(err, lock.ErrInvalid) {
				b.Errorf("%s: %v", name, err)
			}
		}
		b.heldBy(g)
	}},
	{"where there is no queue nothing is sent", func(b *bench) {
		_, err := b.Backend.Acquire(b.Context(), with(ann, func(r *lock.Request) { r.Queue = true }))
		if errors.Is(err, lock.ErrUnsupported) {
			b.free()
		} else if err != nil {
			b.Fatal(err)
		}
	}},
	{"a context that has ended is no answer", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, acquired := b.Backend.Acquire(ctx, request(bob))
		_, inspected := b.Backend.Inspect(ctx, []lock.Key{key})
		for name, err := range map[string]error{
			"acquire": acquired,
			"renew":   b.Backend.Renew(ctx, []lock.Extension{{Grant: g, TTL: ttl}})[0].Err,
			"release": b.Backend.Release(ctx, g, lock.Leave{}),
			"abandon": b.Backend.Abandon(ctx, key, ann),
			"inspect": inspected,
		} {
			if !errors.Is(err, lock.ErrUnknown) {
				b.Errorf("%s: %v", name, err)
			}
		}
		b.heldBy(g)
	}},
}
