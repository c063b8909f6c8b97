package locktest

import (
	"strconv"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

func number(f lock.FencingToken) string { return strconv.FormatInt(int64(f), 10) }

var settleClauses = []clause{
	{"after a clean release there is nothing to wait for", func(b *bench) {
		b.release(b.acquire(request(ann)).Grant, lock.Leave{})
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedReleased, 0)
	}},
	{"the first tenure waits for nothing", func(b *bench) {
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedNone, 0)
	}},
	{"after a key ran out the start waits from now", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(10 * ttl)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, delay)
	}},
	{"after a key was removed the start waits from the end of its lease", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(ttl / 2)
		b.Store.Delete(key)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, ttl/2+delay)
	}},
	{"a renewal moves the end of the lease that is waited for", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl / 2)
		b.renewed(g, ttl)
		b.Store.Delete(key)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, ttl+delay)
	}},
	{"after an unclean release the start waits", func(b *bench) {
		b.release(b.acquire(request(ann)).Grant, lock.Leave{Unclean: true})
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, ttl+delay)
	}},
	{"after all data was lost the start waits for a whole ttl more", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Flush()
		r := settling(cleo, afar)
		r.Floor = g.FencingToken + 1
		b.ended(b.acquire(r), lock.EndedForgotten, ttl+delay)
	}},
	// C63: a failover to a replica that is behind.
	{"where the store remembers less than the caller, data was lost", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{})
		b.Store.SetFence(key, number(g.FencingToken))
		r := settling(cleo, afar)
		r.Floor = g.FencingToken + 2
		b.ended(b.acquire(r), lock.EndedForgotten, ttl+delay)
	}},
	{"where the store remembers just what the caller saw, nothing was lost", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{})
		r := settling(cleo, afar)
		r.Floor = g.FencingToken + 1
		b.ended(b.acquire(r), lock.EndedReleased, 0)
	}},
	{"where the store knows a fencing token and no tenure, data was lost", func(b *bench) {
		b.Store.SetFence(key, "1000")
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedForgotten, ttl+delay)
	}},
	{"after a foreign holder that was seen the start waits", func(b *bench) {
		b.Store.Plant(key, "string", "x", ttl)
		b.refused(settling(cleo, afar))
		b.Advance(ttl + time.Millisecond)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedForeign, delay)
	}},
	{"a foreign holder is settled for once", func(b *bench) {
		b.Store.Plant(key, "string", "x", ttl)
		b.refused(request(ann))
		b.Store.Delete(key)
		b.release(b.acquire(request(ann)).Grant, lock.Leave{})
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedReleased, 0)
	}},
	{"without a delay there is never a wait, and the ending is told all the same", func(b *bench) {
		b.acquire(request(ann))
		b.Store.Delete(key)
		b.ended(b.acquire(request(cleo)), lock.EndedUnreleased, 0)
	}},
	{"the caller's own home is not waited for", func(b *bench) {
		b.acquire(request(ann))
		b.Store.Delete(key)
		b.ended(b.acquire(settling(bob, settled)), lock.EndedUnreleased, 0)
	}},
	{"the same owner again hears the same ending, and what is left of the wait", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, delay)
		b.Advance(delay / 2)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, delay/2)
		b.Advance(delay)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, 0)
	}},
}

var carryClauses = []clause{
	{"a wait that was found is kept over an abandoned acquire", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, delay)
		b.abandon(cleo)
		b.Advance(delay / 2)
		b.ended(b.acquire(settling("away/x/4", afar)), lock.EndedReleased, delay/2)
	}},
	{"a wait that was found is kept over a clean release", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		b.release(b.acquire(settling(cleo, afar)).Grant, lock.Leave{})
		b.ended(b.acquire(settling("away/x/4", afar)), lock.EndedReleased, delay)
		b.abandon("away/x/4")
		b.Advance(delay + time.Millisecond)
		b.ended(b.acquire(settling("away/x/5", afar)), lock.EndedReleased, 0)
	}},
	{"a wait that was found is kept while a tenure goes on after its key vanished", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		g := b.acquire(settling(cleo, afar)).Grant
		b.Store.Delete(key)
		b.about("wait", b.acquire(continuing(g, afar)).StartAfter, delay)
	}},
	{"the longer of two waits counts", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		b.acquire(settling(cleo, afar))
		b.Store.Delete(key)
		b.ended(b.acquire(settling(bob, settled)), lock.EndedUnreleased, ttl+delay)
	}},
	{"a wait that the caller's home does not need is kept for others", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		g := b.acquire(settling(bob, settled)).Grant
		b.release(g, lock.Leave{})
		b.ended(b.acquire(settling("home/x/4", settled)), lock.EndedReleased, 0)
		b.abandon("home/x/4")
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedReleased, delay)
	}},
	{"a wait for two ends is spared only to a home that confirms both", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(2 * ttl)
		b.acquire(settling(bob, settled))
		b.Advance(ttl + time.Millisecond)
		b.ended(b.acquire(settling("home/x/4", settled)), lock.EndedUnreleased, 0)
		b.Store.Delete(key)
		b.ended(b.acquire(settling(cleo, afar)), lock.EndedUnreleased, ttl+delay)
		b.Store.Delete(key)
		b.ended(b.acquire(settling("home/x/5", settled)), lock.EndedUnreleased, ttl+delay)
	}},
	{"a wait for another home's end is not forgotten because one of the caller's own ended after it", func(b *bench) {
		b.acquire(request(cleo))
		b.Advance(2 * ttl)
		b.ended(b.acquire(settling(bob, settled)), lock.EndedUnreleased, delay)
		b.Store.Delete(key)
		b.ended(b.acquire(settling("home/x/4", settled)), lock.EndedUnreleased, ttl+delay)
	}},
	{"a clock that was ahead does not block the start for longer than two days", func(b *bench) {
		b.acquire(request(ann))
		b.Store.Delete(key)
		b.Advance(-1000 * time.Hour)
		if a := b.acquire(settling(cleo, afar)); a.StartAfter > lock.MaxTTL+delay {
			b.Fatalf("acquired %+v", a)
		}
	}},
}
