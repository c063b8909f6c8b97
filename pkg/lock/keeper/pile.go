package keeper

import (
	"container/heap"
	"time"
)

// pile is a heap of entries that each know their place in it. An entry is in one pile at most.
type pile struct {
	before func(a, b *entry) bool
	items  []*entry
}

var _ heap.Interface = (*pile)(nil)

func (p *pile) Len() int           { return len(p.items) }
func (p *pile) Less(i, j int) bool { return p.before(p.items[i], p.items[j]) }

func (p *pile) Swap(i, j int) {
	p.items[i], p.items[j] = p.items[j], p.items[i]
	p.items[i].slot, p.items[j].slot = i, j
}

// Push is for container/heap; use add.
func (p *pile) Push(x any) {
	e := x.(*entry)
	e.pile, e.slot = p, len(p.items)
	p.items = append(p.items, e)
}

// Pop is for container/heap; use take.
func (p *pile) Pop() any {
	last := len(p.items) - 1
	e := p.items[last]
	p.items[last] = nil
	p.items = p.items[:last]
	e.pile = nil
	return e
}

func (p *pile) add(e *entry) { heap.Push(p, e) }

func (p *pile) head() *entry {
	if len(p.items) == 0 {
		return nil
	}
	return p.items[0]
}

func (p *pile) take() *entry { return heap.Pop(p).(*entry) }

// lift takes an entry out of the pile it is in, if any.
func lift(e *entry) {
	if e.pile != nil {
		heap.Remove(e.pile, e.slot)
	}
}

func byDue(a, b *entry) bool { return a.due.Before(b.due) }

// byDanger puts the grant first that ends first. One without an answer yet is in most danger.
func byDanger(a, b *entry) bool { return a.grant.ValidUntil.Before(b.grant.ValidUntil) }

// untilDue is how long p's head has still to wait; negative if p is empty.
func (p *pile) untilDue(now time.Time) time.Duration {
	if e := p.head(); e != nil {
		return max(0, e.due.Sub(now))
	}
	return -1
}
