package locktest

import (
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

var acquireClauses = []clause{
	{"a free key is granted, and valid for less than its ttl", func(b *bench) {
		a := b.acquire(request(ann))
		if a.Again || a.Grant.Owner != ann || a.Grant.Key != key || a.Grant.FencingToken <= 0 || a.Warning != "" {
			b.Fatalf("acquired %+v", a)
		}
		b.ended(a, lock.EndedNone, 0)
		b.validFor(a.Grant, ttl)
		b.about("remaining", b.heldBy(a.Grant).Remaining, ttl)
	}},
	{"another owner is refused, and told who has it", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		seen := b.refused(request(bob))
		if seen.State != lock.ViewHeld || seen.Owner != ann || seen.Token != g.Token || seen.FencingToken != g.FencingToken {
			b.Fatalf("seen %+v", seen)
		}
		b.about("remaining", seen.Remaining, ttl)
		b.heldBy(g)
	}},
	{"the same candidate with another nonce is another owner", func(b *bench) {
		b.acquire(request(lock.NewOwner("home/pod", "1")))
		b.refused(request(lock.NewOwner("home/pod", "2")))
	}},
	{"an owner whose name begins like the holder's is another owner", func(b *bench) {
		b.acquire(request(ann))
		b.refused(request(ann + "2"))
		b.refused(request(ann[:len(ann)-1]))
	}},
	// C01, M1: an answer that was lost is asked for again, and is never "held by another".
	{"the same owner again gets the same token, and the ttl anew", func(b *bench) {
		first := b.acquire(request(ann))
		b.Advance(ttl / 2)
		again := b.acquire(request(ann))
		if !again.Again || again.Grant.Token != first.Grant.Token || again.Grant.FencingToken != first.Grant.FencingToken {
			b.Fatalf("again %+v, first %+v", again, first)
		}
		b.ended(again, lock.EndedNone, 0)
		b.validFor(again.Grant, ttl)
		b.about("remaining", b.heldBy(first.Grant).Remaining, ttl)
	}},
	{"the same owner again with a shorter ttl does not shorten", func(b *bench) {
		b.acquire(request(ann))
		a := b.acquire(with(ann, func(r *lock.Request) { r.TTL = ttl / 4 }))
		b.validFor(a.Grant, ttl/4)
		b.about("remaining", b.view().Remaining, ttl)
	}},
	{"a key that ran out is granted to another", func(b *bench) {
		old := b.acquire(request(ann)).Grant
		b.Advance(ttl + time.Millisecond)
		if old.Valid(b.Now()) {
			b.Fatal("the old grant is still valid")
		}
		b.heldBy(b.acquire(request(bob)).Grant)
	}},
	{"a grant ends before the store lets go", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Advance(ttl - lock.Drift(ttl))
		if g.Valid(b.Now()) {
			b.Fatal("the grant is valid for as long as the key")
		}
		b.refused(request(bob))
	}},
	{"keys do not disturb each other, nor does a raw key one of the same text", func(b *bench) {
		keys := []lock.Key{
			{Name: "k"}, {Name: "k", Raw: true}, {Name: "k:fence"}, {Name: "k:last"}, {Name: "%6B"}, {Name: "{k}"}, {Name: "k:raw"}, rawKey,
		}
		for _, k := range keys {
			b.acquire(with(ann, func(r *lock.Request) { r.Key = k }))
		}
		for _, k := range keys {
			if v := b.look(k); v.State != lock.ViewHeld || v.Owner != ann || v.Key != k {
				b.Fatalf("%+v", v)
			}
		}
	}},
	{"of many owners at once one is granted", func(b *bench) {
		owners := []lock.Owner{"p/1", "p/2", "p/3", "p/4", "p/5", "p/6", "p/7", "p/8"}
		granted := make([]bool, len(owners))
		var all sync.WaitGroup
		for i, o := range owners {
			all.Go(func() {
				_, err := b.Backend.Acquire(b.Context(), request(o))
				granted[i] = err == nil
			})
		}
		all.Wait()
		n := 0
		for _, ok := range granted {
			if ok {
				n++
			}
		}
		if n != 1 {
			b.Fatalf("%d owners were granted the key", n)
		}
	}},
}
