package locktest

import (
	"strconv"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// higher must be the second one's fencing token.
func (b *bench) higher(before, after lock.Grant) {
	b.Helper()
	if after.FencingToken <= before.FencingToken {
		b.Fatalf("fencing token %d after %d", after.FencingToken, before.FencingToken)
	}
}

func floored(o lock.Owner, floor lock.FencingToken) lock.Request {
	return with(o, func(r *lock.Request) { r.Floor = floor })
}

var fencingClauses = []clause{
	{"it rises with every acquisition, however quick", func(b *bench) {
		before := b.acquire(request(ann)).Grant
		for range 5 {
			b.release(before, lock.Leave{})
			after := b.acquire(request(ann)).Grant
			b.higher(before, after)
			before = after
		}
	}},
	{"it rises after the key ran out, and after it was removed by hand", func(b *bench) {
		first := b.acquire(request(ann)).Grant
		b.Advance(2 * ttl)
		second := b.acquire(request(bob)).Grant
		b.higher(first, second)
		b.Store.Delete(key)
		b.higher(second, b.acquire(request(ann)).Grant)
	}},
	// C37: a lock that was deleted and made again never starts lower.
	{"it rises after all data was lost, if the caller says what it saw", func(b *bench) {
		first := b.acquire(floored(ann, 1<<50)).Grant
		b.Store.Flush()
		second := b.acquire(floored(bob, first.FencingToken+1)).Grant
		b.higher(first, second)
		b.Store.Flush()
		b.higher(second, b.acquire(floored(bob, second.FencingToken+1)).Grant)
	}},
	{"it is about the time, so it rises after all data was lost, also without the caller's help", func(b *bench) {
		first := b.acquire(request(ann)).Grant
		b.Store.Flush()
		b.Advance(2 * time.Second)
		b.higher(first, b.acquire(request(bob)).Grant)
	}},
	{"it is at least the floor", func(b *bench) {
		if g := b.acquire(floored(ann, 1<<50)).Grant; g.FencingToken < 1<<50 {
			b.Fatalf("fencing token %d", g.FencingToken)
		}
	}},
	{"a stored one that is far ahead of the clock is ignored and reported", func(b *bench) {
		b.Store.SetFence(key, strconv.FormatInt(1<<52, 10))
		a := b.acquire(request(ann))
		if a.Warning == "" || a.Grant.FencingToken >= 1<<52 {
			b.Fatalf("acquired %+v", a)
		}
		if v := b.view(); v.Highest != a.Grant.FencingToken {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"a stored one that is no number is ignored and reported", func(b *bench) {
		b.Store.SetFence(key, "9e99")
		if a := b.acquire(request(ann)); a.Warning == "" {
			b.Fatalf("acquired %+v", a)
		}
	}},
	{"a stored one somewhat ahead of the clock counts", func(b *bench) {
		next := lock.FencingToken(b.Now().Add(time.Hour).UnixMilli())
		b.Store.SetFence(key, strconv.FormatInt(int64(next), 10))
		if a := b.acquire(request(ann)); a.Warning != "" || a.Grant.FencingToken <= next {
			b.Fatalf("acquired %+v, stored %d", a, next)
		}
	}},
	{"it is remembered while a lock is held for longer than the store remembers a free one", func(b *bench) {
		const day = 24 * time.Hour
		r := with(ann, func(r *lock.Request) { r.TTL = day })
		g := b.acquire(r).Grant
		for range 40 {
			b.Advance(day - time.Minute)
			g = b.renewed(g, day)
		}
		b.Store.Delete(key)
		if v := b.view(); v.Highest != g.FencingToken || v.Last != ann {
			b.Fatalf("seen %+v", v)
		}
	}},
}
