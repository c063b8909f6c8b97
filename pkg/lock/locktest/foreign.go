package locktest

import (
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// foreign must be how everybody sees a planted value, and it must stay as it is.
func (b *bench) foreign(kind string, remaining time.Duration) {
	b.Helper()
	check := func(v lock.View) {
		b.Helper()
		if v.State != lock.ViewForeign || v.Type != kind || v.NoExpiry != (remaining == 0) || v.Owner != "" || v.Token != "" {
			b.Fatalf("seen %+v", v)
		}
		b.about("remaining", v.Remaining, remaining)
	}
	check(b.refused(request(ann)))
	check(b.refused(request(bob)))
	check(b.view())
}

var foreignClauses = []clause{
	// C05
	{"a string of another program holds until it is gone", func(b *bench) {
		b.Store.Plant(key, "string", "3f1b-uuid", ttl)
		b.foreign("string", ttl)
		b.Advance(ttl + time.Millisecond)
		b.acquire(request(ann))
	}},
	{"an empty string holds too", func(b *bench) {
		b.Store.Plant(key, "string", "", ttl)
		b.foreign("string", ttl)
	}},
	// C03
	{"a string without expiry is not stolen", func(b *bench) {
		b.Store.Plant(key, "string", "forever", 0)
		b.foreign("string", 0)
		b.Advance(100 * ttl)
		b.foreign("string", 0)
	}},
	{"a token in our form without expiry is not stolen", func(b *bench) {
		b.Store.Plant(key, "string", string(cleo)+"#12", 0)
		b.foreign("string", 0)
	}},
	{"what only looks like a token is foreign", func(b *bench) {
		for _, text := range []string{"#5", "a#b", "a#5#6", "a#-5", "a#5 ", "a#99999999999999999999", "released/", "a\nb#5"} {
			b.Store.Plant(key, "string", text, ttl)
			if v := b.refused(request(ann)); v.State != lock.ViewForeign {
				b.Fatalf("%q: seen %+v", text, v)
			}
		}
	}},
	{"a hash or list holds, with or without expiry", func(b *bench) {
		b.Store.Plant(key, "hash", "x", 0)
		b.foreign("hash", 0)
		b.Store.Delete(key)
		b.Store.Plant(key, "list", "x", ttl)
		b.foreign("list", ttl)
	}},
	{"a raw key of another program holds", func(b *bench) {
		b.Store.Plant(rawKey, "string", "3f1b-uuid", ttl)
		if v := b.refused(with(ann, func(r *lock.Request) { r.Key = rawKey })); v.State != lock.ViewForeign {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"it ends a grant, and is neither renewed nor released nor abandoned", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Plant(key, "hash", "x", 0)
		if v := b.lost(b.renew(lock.Extension{Grant: g, TTL: ttl}).Err, g.Token); v.State != lock.ViewForeign {
			b.Fatalf("seen %+v", v)
		}
		b.lost(b.Backend.Release(b.Context(), g, lock.Leave{}), g.Token)
		b.abandon(ann)
		b.foreign("hash", 0)
	}},
	{"the message says what stands there", func(b *bench) {
		b.Store.Plant(key, "hash", "x", 0)
		_, err := b.Backend.Acquire(b.Context(), request(ann))
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Key != key || held.Error() == "" {
			b.Fatalf("error %v", err)
		}
	}},
}
