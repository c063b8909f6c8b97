package keeper_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestTenThousandLocksNeedNoMoreGoroutinesThanNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // not parallel: it counts goroutines
		r := newRig(t)
		before, heap := runtime.NumGoroutine(), heapBytes()
		const n = 10_000
		minute := keeper.Terms{TTL: time.Minute, RenewInterval: 10 * time.Second}
		for i := range n {
			id := idOf(i, "a")
			r.Adopt(r.store.plant(id.Key, id.Owner, time.Minute), minute)
		}
		elapse(time.Second)
		perLock := (heapBytes() - heap) / n
		r.store.forgetCalls()
		for range 30 {
			elapse(time.Second)
			if now := runtime.NumGoroutine(); now > before+8 { // calls have timers of their own
				t.Fatalf("%d goroutines, %d before", now, before)
			}
		}
		members := 0
		for _, c := range r.store.called("renew") {
			members += len(c.renewed)
		}
		if members < 3*n || members > 5*n {
			t.Fatalf("%d renewals in three intervals", members)
		}
		if h := r.Health(); !h.RoundDone || r.observer.holding != n || r.observer.late > 0 {
			t.Fatalf("health %+v, holding %d, late %s", h, r.observer.holding, r.observer.late)
		}
		t.Logf("about %d bytes a lock, what the test's store and calls need included", perLock)
	})
}

func heapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// C49: after an outage neither renewals nor waiters come in step.
func TestAfterAnOutageTheLoadIsSpread(t *testing.T) {
	outages := map[string]fault{"refused": cut, "black hole": {hang: true}}
	for name, f := range outages {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const n = 300
				r := newRig(t)
				minute := keeper.Terms{TTL: time.Minute, RenewInterval: 10 * time.Second}
				for i := range n {
					held, waits := idOf(i, "a"), idOf(n+i, "a")
					r.Adopt(r.store.plant(held.Key, held.Owner, time.Minute), minute)
					r.store.plant(waits.Key, "there/b/1", time.Hour)
					r.Acquire(want(waits))
				}
				elapse(5 * time.Second)
				r.store.setFault(always(f))
				elapse(30 * time.Second)
				r.store.setFault(always(pass))
				r.store.forgetCalls()
				began := time.Now()
				elapse(2 * time.Minute)
				checkSpread(t, r, began, 4)
			})
		})
	}
}

// checkSpread fails if a tenth of a second has more than so many times the mean number of commands.
func checkSpread(t *testing.T, r *rig, began time.Time, times int) {
	t.Helper()
	slots, total := make([]int, 1201), 0
	for _, c := range r.store.called("") {
		slots[c.at.Sub(began)/(100*time.Millisecond)] += len(c.keys)
		total += len(c.keys)
	}
	mean := float64(total) / float64(len(slots))
	for i, n := range slots {
		if float64(n) > mean*float64(times) {
			t.Errorf("%d in slot %d, on average %.1f", n, i, mean)
		}
	}
}

// Orders and questions come from many goroutines while everything that can go wrong does. What is
// left must be consistent; the race detector sees the rest.
func TestOrdersFromManySidesUnderFaults(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, func(o *keeper.Options) { o.BatchSize = 8 })
		dice := rand.New(rand.NewPCG(5, 6))
		r.store.setFault(func(call) fault { // called with the store's mutex held
			switch dice.IntN(10) {
			case 0:
				return cut
			case 1:
				return fault{lose: true}
			case 2:
				return fault{delay: 300 * time.Millisecond}
			case 3:
				return fault{hang: dice.IntN(4) == 0}
			}
			return fault{delay: time.Duration(dice.IntN(20)) * time.Millisecond}
		})
		var wg sync.WaitGroup
		for side := range 8 {
			wg.Go(func() { muddle(r, rand.New(rand.NewPCG(7, uint64(side)))) })
		}
		wg.Wait()
		r.store.setFault(always(pass))
		for _, s := range r.States() {
			r.Release(s.ID, lock.Leave{})
		}
		elapse(2 * ttl)
		for _, s := range r.States() {
			if s.Phase != keeper.PhaseReleased && s.Phase != keeper.PhaseAbandoned {
				t.Errorf("%s %s is still %s: %v", s.ID.Key, s.ID.Owner, s.Phase, s.Err)
			}
		}
		if r.observer.holding != 0 {
			t.Errorf("holding %d", r.observer.holding)
		}
	})
}

func muddle(r *rig, dice *rand.Rand) {
	for range 500 {
		id := idOf(dice.IntN(20), string(rune('a'+dice.IntN(3))))
		switch dice.IntN(10) {
		case 0:
			r.Forget(id)
		case 1, 2:
			r.Release(id, lock.Leave{})
		case 3:
			r.AbandonFor(id, ttl)
		case 4:
			r.Retime(id, keeper.Terms{TTL: time.Duration(2+dice.IntN(20)) * time.Second}, dice.IntN(2) == 0)
		case 5:
			r.States()
			r.Health()
		default:
			r.Acquire(want(id))
		}
		<-time.After(time.Duration(dice.IntN(50)) * time.Millisecond)
	}
}
