package locktest

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var releaseClauses = []clause{
	{"a released key is free, and the next one hears of a clean end", func(b *bench) {
		b.release(b.acquire(request(ann)).Grant, lock.Leave{})
		b.free()
		b.ended(b.acquire(request(bob)), lock.EndedReleased, 0)
	}},
	{"releasing the same token again is nothing", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{})
		b.release(g, lock.Leave{})
		b.release(g, lock.Leave{Unclean: true})
		b.ended(b.acquire(request(bob)), lock.EndedReleased, 0)
	}},
	{"an unclean release again is nothing either", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{Unclean: true})
		b.release(g, lock.Leave{})
		b.ended(b.acquire(request(bob)), lock.EndedUnreleased, 0)
	}},
	// A lost reply, and a waiter that was quick.
	{"releasing the same token again after the next one acquired is nothing, and leaves that alone", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{})
		other := b.acquire(request(bob)).Grant
		b.release(g, lock.Leave{})
		b.heldBy(other)
	}},
	// C07
	{"a late holder does not take the key of its successor", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl + time.Millisecond)
		other := b.acquire(request(bob)).Grant
		if v := b.lost(b.Backend.Release(b.Context(), g, lock.Leave{}), g.Token); v.Token != other.Token {
			b.Fatalf("seen %+v", v)
		}
		b.about("remaining", b.heldBy(other).Remaining, ttl)
	}},
	{"the same owner's earlier token does not release the later one", func(b *bench) {
		old := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		g := b.acquire(request(ann)).Grant
		b.lost(b.Backend.Release(b.Context(), old, lock.Leave{}), old.Token)
		b.heldBy(g)
	}},
	{"a key that ran out is lost, not released", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl + time.Millisecond)
		if v := b.lost(b.Backend.Release(b.Context(), g, lock.Leave{}), g.Token); v.State != lock.ViewFree {
			b.Fatalf("seen %+v", v)
		}
		b.ended(b.acquire(request(bob)), lock.EndedUnreleased, 0)
	}},
	{"a key that is kept is granted to nobody until that is over", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{Keep: 2 * ttl})
		seen := b.refused(request(bob))
		if seen.State != lock.ViewReleased || b.view().State != lock.ViewReleased {
			b.Fatalf("seen %+v", seen)
		}
		b.about("remaining", seen.Remaining, 2*ttl)
		b.refused(request(ann))
		b.Advance(2*ttl + time.Millisecond)
		b.ended(b.acquire(request(bob)), lock.EndedReleased, 0)
	}},
	{"a key that is kept may be released again, without effect", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.release(g, lock.Leave{Keep: ttl})
		b.release(g, lock.Leave{})
		b.refused(request(bob))
	}},
}

var abandonClauses = []clause{
	// C01, C81: what an unanswered acquire left is removed.
	{"what an unanswered acquire left is removed, and counts as clean", func(b *bench) {
		b.acquire(request(ann))
		b.abandon(ann)
		b.free()
		b.ended(b.acquire(request(bob)), lock.EndedReleased, 0)
	}},
	{"what an unanswered acquire left and ran out counts as clean", func(b *bench) {
		b.acquire(request(ann))
		b.Advance(ttl + time.Millisecond)
		b.abandon(ann)
		b.ended(b.acquire(request(bob)), lock.EndedReleased, 0)
	}},
	{"a free key, and a second time, are fine", func(b *bench) {
		b.abandon(ann)
		b.acquire(request(ann))
		b.abandon(ann)
		b.abandon(ann)
		b.free()
	}},
	{"another owner's key is left alone", func(b *bench) {
		g := b.acquire(request(bob)).Grant
		b.abandon(ann)
		b.abandon(bob + "2")
		b.abandon(bob[:len(bob)-1])
		b.heldBy(g)
		b.Advance(ttl + time.Millisecond)
		b.ended(b.acquire(request(cleo)), lock.EndedUnreleased, 0)
	}},
	{"a continuation that is abandoned was started, so it counts as unclean", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		b.acquire(continuing(g, afar))
		b.abandon(ann)
		b.free()
		b.ended(b.acquire(request(bob)), lock.EndedUnreleased, 0)
	}},
	{"a released marker is left alone", func(b *bench) {
		b.release(b.acquire(request(ann)).Grant, lock.Leave{Keep: ttl})
		b.abandon(ann)
		b.refused(request(bob))
	}},
}
