package keeper

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lastRound renews everything held once more, so that a successor has a whole ttl to take over, and
// tries once more to give back what was ordered to be. Calls ends it.
func (k *Keeper) lastRound(calls context.Context) {
	batches, departures := k.takeAll(time.Now())
	var wg sync.WaitGroup
	inParallel(&wg, k.o.Batches, batches, func(b batch) { k.renewFully(calls, b) })
	inParallel(&wg, k.o.Calls, departures, func(d departure) { k.depart(calls, d) })
	wg.Wait()
}

// takeAll takes what no call is under way for.
func (k *Keeper) takeAll(now time.Time) ([]batch, []departure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var batches []batch
	var departures []departure
	for len(k.halves) > 0 {
		if b, ok := k.takeHalf(); ok {
			batches = append(batches, b)
		}
	}
	for _, e := range k.entries {
		if e.pile == nil {
			continue
		}
		switch e.phase {
		case PhaseHeld:
			lift(e)
			k.ready[e.class()].add(e)
		case PhaseReleasing, PhaseAbandoning:
			lift(e)
			departures = append(departures, k.departing(e))
		}
	}
	for class := k.mostEndangered(); class >= 0; class = k.mostEndangered() {
		batches = append(batches, k.fill(class, now))
	}
	return batches, departures
}

// renewFully renews a batch and, if it panicked, its halves.
func (k *Keeper) renewFully(calls context.Context, b batch) {
	halves := []batch{b}
	for len(halves) > 0 {
		last := halves[len(halves)-1]
		halves = slices.Concat(halves[:len(halves)-1], k.renew(calls, last))
	}
}

// inParallel does all work in up to n goroutines of the group, in order.
func inParallel[T any](wg *sync.WaitGroup, n int, work []T, do func(T)) {
	queue := make(chan T, len(work))
	for _, w := range work {
		queue <- w
	}
	close(queue)
	for range min(n, len(work)) {
		wg.Go(func() {
			for w := range queue {
				do(w)
			}
		})
	}
}
