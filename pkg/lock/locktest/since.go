package locktest

import (
	"github.com/conch-dev/conch/pkg/lock"
)

// continuing asks to go on after the key of a tenure vanished.
func continuing(g lock.Grant, s lock.Settle) lock.Request {
	return with(g.Owner, func(r *lock.Request) { r.Since, r.Floor, r.Settle = g.FencingToken, g.FencingToken+1, s })
}

// noContinuation must be the answer, and returns what was seen.
func (b *bench) noContinuation(r lock.Request) lock.View {
	b.Helper()
	_, err := b.Backend.Acquire(b.Context(), r)
	return b.lost(err, lock.Token(string(r.Owner)+"#"+number(r.Since)))
}

var sinceClauses = []clause{
	// C23: going on needs an acquisition of its own, with a higher fencing token.
	{"a tenure whose key was removed goes on under a higher fencing token, and nothing is settled", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		a := b.acquire(continuing(g, afar))
		if a.Again || a.StartAfter != 0 {
			b.Fatalf("acquired %+v", a)
		}
		b.higher(g, a.Grant)
		b.heldBy(a.Grant)
	}},
	{"a tenure whose store lost all data goes on", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Flush()
		a := b.acquire(continuing(g, afar))
		if a.StartAfter != 0 {
			b.Fatalf("acquired %+v", a)
		}
		b.higher(g, a.Grant)
	}},
	{"it goes on under a higher fencing token also where the store's clock is behind that", func(b *bench) {
		g := b.acquire(floored(ann, 1<<50)).Grant
		b.Store.Flush()
		b.higher(g, b.acquire(with(ann, func(r *lock.Request) { r.Since = g.FencingToken })).Grant)
	}},
	{"it ends where another one has the key", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		other := b.acquire(request(cleo)).Grant
		if v := b.noContinuation(continuing(g, afar)); v.Token != other.Token {
			b.Fatalf("seen %+v", v)
		}
		b.heldBy(other)
	}},
	{"it ends where another one came and went", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		b.release(b.acquire(request(cleo)).Grant, lock.Leave{})
		if v := b.noContinuation(continuing(g, afar)); v.State != lock.ViewFree {
			b.Fatalf("seen %+v", v)
		}
		b.free()
	}},
	{"it ends where something foreign has the key", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Plant(key, "string", "x", 0)
		if v := b.noContinuation(continuing(g, afar)); v.State != lock.ViewForeign {
			b.Fatalf("seen %+v", v)
		}
	}},
	{"asked for twice it is the same", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		b.Store.Delete(key)
		first := b.acquire(continuing(g, afar))
		again := b.acquire(continuing(g, afar))
		if !again.Again || again.Grant.Token != first.Grant.Token {
			b.Fatalf("again %+v, first %+v", again, first)
		}
	}},
	{"where the key never vanished it is the tenure that stands", func(b *bench) {
		g := b.acquire(request(ann)).Grant
		if a := b.acquire(continuing(g, afar)); !a.Again || a.Grant.Token != g.Token {
			b.Fatalf("acquired %+v", a)
		}
	}},
}
