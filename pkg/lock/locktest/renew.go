package locktest

import (
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var renewClauses = []clause{
	{"a grant is extended, and its validity counts from the renewal", func(b *bench) {
		old := b.acquire(request(ann)).Grant
		b.Advance(ttl / 2)
		g := b.renewed(old, ttl)
		b.validFor(g, ttl)
		if g.Token != old.Token || g.FencingToken != old.FencingToken || g.Owner != ann || g.Key != key {
			b.Fatalf("grant %+v after %+v", g, old)
		}
		b.about("remaining", b.heldBy(g).Remaining, ttl)
	}},
	{"many renewals keep a key far beyond its ttl", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		for range 10 {
			b.Advance(ttl / 2)
			g = b.renewed(g, ttl)
		}
		b.refused(request(bob))
	}},
	{"a shorter ttl does not shorten what is left", func(b *bench) {
		g := b.renewed(b.acquire(request(ann)).Grant, ttl/4)
		b.validFor(g, ttl/4)
		b.about("remaining", b.heldBy(g).Remaining, ttl)
	}},
	{"a shorter ttl shortens what is left if that is asked for", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		if r := b.renew(lock.Extension{Grant: g, TTL: ttl / 4, Shorten: true}); r.Err != nil {
			b.Fatal(r.Err)
		}
		b.about("remaining", b.heldBy(g).Remaining, ttl/4)
	}},
	// C23
	{"a key that is gone is never made again", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		if v := b.lost(b.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token); v.State != lock.ViewFree {
			b.Fatalf("seen %+v", v)
		}
		b.free()
	}},
	{"a key that ran out is lost", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl + time.Millisecond)
		b.lost(b.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token)
	}},
	{"another one's key is lost, told whose it is, and left alone", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl + time.Millisecond)
		other := b.acquire(request(bob)).Grant
		b.Advance(ttl / 2)
		if v := b.lost(b.renew(lock.Extension{Grant: g, TTL: 2 * ttl}).Err, g.Token); v.Token != other.Token {
			b.Fatalf("seen %+v", v)
		}
		b.about("remaining", b.heldBy(other).Remaining, ttl/2)
	}},
	{"the same owner under another fencing token is another tenure", func(b *bench) {
		old := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		b.acquire(request(ann))
		b.lost(b.renew(lock.Extension{Grant: old, TTL: ttl}).Err, old.Token)
	}},
	{"a released marker is not renewed", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{Keep: ttl})
		if v := b.lost(b.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token); v.State != lock.ViewReleased {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"a key that lost its expiry gets one again", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Plant(key, "string", string(g.Token), 0)
		b.renewed(g, ttl)
		b.about("remaining", b.heldBy(g).Remaining, ttl)
	}},
	{"results come in the order of the extensions, and one loss does not touch the others", func(b *bench) {
		extensions := make([]lock.Extension, 600)
		for i := range extensions {
			r := request(ann)
			r.Key.Name += number(lock.FencingToken(i))
			extensions[i] = lock.Extension{Grant: b.acquire(r).Grant, TTL: ttl}
		}
		b.Store.Delete(extensions[300].Grant.Key)
		for i, r := range b.Backend.Renew(b.Context(), extensions) {
			if i == 300 {
				b.lost(r.Err, extensions[i].Grant.Token)
			} else if r.Err != nil || r.Grant.Key != extensions[i].Grant.Key || r.Grant.Token != extensions[i].Grant.Token {
				b.Fatalf("result %d: %+v", i, r)
			}
		}
	}},
	{"nothing to renew is fine", func(b *bench) {
		if results := b.Backend.Renew(b.Context(), nil); len(results) != 0 {
			b.Fatalf("results %+v", results)
		}
	}},
	{"a grant that cannot be one is refused, and the others are renewed", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		results := b.Backend.Renew(b.Context(), []lock.Extension{{TTL: ttl}, {Grant: g}, {Grant: g, TTL: ttl}})
		if !errors.Is(results[0].Err, lock.ErrUnknown) || !errors.Is(results[1].Err, lock.ErrUnknown) || results[2].Err != nil {
			b.Fatalf("results %+v", results)
		}
	}},
}
