package keeper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestManyChangesAreToldOnceAndUrgentOnesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 10 {
			r.store.plant(key(i), "there/b/1", 2*time.Second)
			r.Acquire(want(idOf(i, "a")))
		}
		elapse(time.Second) // nobody reads: ten refusals are untold
		r.hold(idOf(20, "a"))
		events := r.drain()
		if len(events) != 11 || events[0] != (keeper.Event{ID: idOf(20, "a"), Urgent: true}) {
			t.Fatalf("events %v", events)
		}
		for _, e := range events[1:] {
			if e.Urgent {
				t.Fatalf("urgent refusal %v", e)
			}
		}
		elapse(10 * time.Second) // all are granted
		if events := r.drain(); len(events) != 10 || !events[0].Urgent {
			t.Fatalf("events %v", events)
		}
		elapse(time.Minute) // renewals are no news
		if events := r.drain(); len(events) != 0 {
			t.Fatalf("events %v", events)
		}
	})
}

func TestNewsThatBecomeUrgentOvertake(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 10 {
			r.store.plant(key(i), "there/b/1", time.Hour)
			r.Acquire(want(idOf(i, "a")))
			synctest.Wait()
		}
		r.store.remove(key(7)) // its refusal is untold when it is granted
		elapse(3 * time.Second)
		events := r.drain()
		if len(events) != 10 || events[0] != (keeper.Event{ID: idOf(7, "a"), Urgent: true}) {
			t.Fatalf("events %v", events)
		}
	})
}

func TestErrorsAreToldWhenTheyBeginChangeAndEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		r.drain()
		noAuth := fault{err: &lock.UnknownError{Op: "test", Reason: lock.ReasonNoAuth, Err: errors.New("NOAUTH")}}
		for _, f := range []fault{cut, noAuth, pass} {
			r.store.setFault(always(f))
			told := 0
			for range 20 {
				elapse(200 * time.Millisecond)
				told += len(r.drain())
			}
			if told != 1 {
				t.Fatalf("told %d times about %v", told, f.err)
			}
		}
	})
}

// The reader looks at the state after each event. However the two race, what it saw last is the
// final state.
func TestTheLastNewsOfAnEntryIsNeverLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		const n = 50
		seen := map[keeper.ID]keeper.Phase{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e := range r.Events() {
				if s, ok := r.State(e.ID); ok {
					seen[e.ID] = s.Phase
				}
			}
		}()
		for i := range n {
			r.store.plant(key(i), "there/b/1", time.Duration(i)*20*time.Millisecond)
			r.Acquire(want(idOf(i, "a")))
		}
		elapse(10 * time.Second)
		for i := range n {
			switch i % 3 {
			case 0:
				r.store.remove(key(i))
			case 1:
				r.Release(idOf(i, "a"), lock.Leave{})
			}
		}
		elapse(10 * time.Second)
		r.stop()
		<-done
		for i := range n {
			s, _ := r.State(idOf(i, "a"))
			if seen[s.ID] != s.Phase {
				t.Errorf("the reader saw %q last, and it is %q", seen[s.ID], s.Phase)
			}
		}
	})
}

func TestAForgottenEntryIsNoNews(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 3 {
			r.hold(idOf(i, "a"))
			r.Forget(idOf(i, "a"))
		}
		synctest.Wait()
		// One event may be on offer already; its entry is gone, as the reader finds.
		if events := r.drain(); len(events) > 1 {
			t.Fatalf("events %v", events)
		}
	})
}
