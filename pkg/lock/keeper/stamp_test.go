package keeper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
	"github.com/conch-dev/conch/pkg/lock/locktest"
	"github.com/conch-dev/conch/pkg/lock/memory"
)

// ticks is a rig over the reference store.
type ticks struct {
	*rig
	memory *memory.Backend
	faulty *locktest.Faulty
	minute int64
}

func newTicks(t *testing.T) *ticks {
	t.Helper()
	m := memory.New(memory.Options{})
	f := locktest.Wrap(m)
	r := newRig(t, func(o *keeper.Options) { o.Backend = f })
	return &ticks{rig: r, memory: m, faulty: f, minute: lock.TickMinute(time.Now())}
}

func (t *ticks) id(owner string, later int64) keeper.ID {
	id := idOf(1, owner)
	id.Key = id.Key.At(t.minute + later)
	return id
}

// claim orders a tick and waits until it is held.
func (t *ticks) claim(id keeper.ID) keeper.State {
	t.t.Helper()
	w := want(id)
	w.Request.Ordered = true
	t.Acquire(w)
	synctest.Wait()
	s := t.mustBe(id, keeper.PhaseHeld)
	t.drain()
	return s
}

// mustStand is where the entry must be, with no order out.
func (t *ticks) mustStand(id keeper.ID, stage lock.Stage) keeper.State {
	t.t.Helper()
	s := t.mustBe(id, keeper.PhaseHeld)
	if s.Stage != stage || s.Stamping != "" || s.Acquired.Grant.Stage != stage {
		t.t.Fatalf("%s stands at %q, order %q (%v), want %q", id.Key, s.Stage, s.Stamping, s.StampErr, stage)
	}
	return s
}

func (t *ticks) stored(id keeper.ID) lock.View {
	t.t.Helper()
	views, err := t.memory.Inspect(t.t.Context(), []lock.Key{id.Key})
	if err != nil {
		t.t.Fatal(err)
	}
	return views[0]
}

// urgent must be what is told, once, about the entry.
func (t *ticks) urgent(id keeper.ID) {
	t.t.Helper()
	events := t.drain()
	if len(events) != 1 || events[0] != (keeper.Event{ID: id, Urgent: true}) {
		t.t.Fatalf("events %+v, want one that is urgent", events)
	}
}

// elsewhere runs a tick as another process would.
func (t *ticks) elsewhere(id keeper.ID, stage lock.Stage) {
	t.t.Helper()
	a, err := t.memory.Acquire(t.t.Context(), lock.Request{Key: id.Key, Owner: id.Owner, TTL: ttl})
	if err == nil && stage != lock.StageClaimed {
		_, err = t.memory.Stamp(t.t.Context(), a.Grant, stage)
	}
	if err != nil {
		t.t.Fatal(err)
	}
}

func TestAnOrderStampsATick(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		if s := r.claim(id); s.Stage != lock.StageClaimed {
			t.Fatalf("claimed %+v", s)
		}
		for _, stage := range []lock.Stage{lock.StageStarted, lock.StageSucceeded} {
			before := time.Now()
			r.Stamp(id, stage)
			r.urgent(id)
			if s := r.mustStand(id, stage); !s.Acquired.Grant.ValidUntil.Equal(lock.ValidUntil(before, ttl)) {
				t.Errorf("valid until %s", s.Acquired.Grant.ValidUntil)
			}
			if v := r.stored(id); v.Stage != stage {
				t.Errorf("stored %+v", v)
			}
		}
		calls := r.faulty.Calls(locktest.Renew)
		for _, stage := range []lock.Stage{lock.StageStarted, lock.StageSucceeded, lock.StageFailed, lock.StageClaimed, ""} {
			r.Stamp(id, stage)
		}
		synctest.Wait()
		if n := r.faulty.Calls(locktest.Renew) - calls; n != 0 {
			t.Errorf("orders that lead nowhere made %d calls", n)
		}
	})
}

func TestAStampWithoutAnAnswerIsRepeated(t *testing.T) {
	faults := map[string]locktest.Fault{"a failure": {Fail: true}, "a lost answer": {LoseReply: true}, "a call that hangs": {Hang: true}}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newTicks(t)
				id := r.id("a", 0)
				r.claim(id)
				fault.Ops = []locktest.Op{locktest.Renew}
				r.faulty.Inject(fault)
				r.Stamp(id, lock.StageStarted)
				elapse(time.Second)
				s := r.mustBe(id, keeper.PhaseHeld)
				if s.Stage != lock.StageClaimed || s.Stamping != lock.StageStarted || !errors.Is(s.StampErr, lock.ErrUnknown) {
					t.Fatalf("state %+v", s)
				}
				r.faulty.Heal()
				elapse(time.Second)
				if s := r.mustStand(id, lock.StageStarted); s.StampErr != nil || s.Err != nil {
					t.Fatalf("state %+v", s)
				}
			})
		})
	}
}

func TestATickThatWasStartedIsKeptThroughTheLossOfAllData(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		r.claim(id)
		r.Stamp(id, lock.StageStarted)
		elapse(time.Second)
		r.memory.Flush()
		r.elsewhere(r.id("b", 0), lock.StageClaimed)
		elapse(terms.RenewInterval)
		r.mustStand(id, lock.StageStarted)
		if v := r.stored(id); v.Stage != lock.StageStarted || v.Owner != id.Owner {
			t.Fatalf("stored %+v", v)
		}
		r.memory.Flush()
		r.Stamp(id, lock.StageFailed)
		elapse(time.Second)
		r.mustStand(id, lock.StageFailed)
	})
}

func TestAStampedClaimThatRanOutIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		r.claim(id)
		r.memory.Delete(id.Key)
		r.elsewhere(r.id("b", 0), lock.StageStarted)
		r.Stamp(id, lock.StageStarted)
		r.drain()
		if s := r.mustBe(id, keeper.PhaseLost); s.Seen.Stage != lock.StageStarted || s.Stage != lock.StageClaimed {
			t.Fatalf("state %+v", s)
		}
	})
}

func TestAStampThatCameTooLateLeavesTheClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		r.claim(id)
		r.elsewhere(r.id("b", 1), lock.StageStarted)
		r.Stamp(id, lock.StageStarted)
		r.urgent(id)
		r.Stamp(id, lock.StageStarted)
		elapse(2 * ttl)
		if s := r.mustStand(id, lock.StageClaimed); !errors.Is(s.StampErr, lock.ErrTooOld) || !s.Acquired.Grant.Valid(time.Now()) {
			t.Fatalf("state %+v", s)
		}
		r.Release(id, lock.Leave{})
		synctest.Wait()
		r.mustBe(id, keeper.PhaseReleased)
		if v := r.stored(id); v.State != lock.ViewFree {
			t.Fatalf("stored %+v", v)
		}
	})
}

func TestATickIsPutBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		r.claim(id)
		r.Stamp(id, lock.StageStarted)
		r.drain()
		r.Release(id, lock.Leave{})
		r.drain()
		if s := r.mustStand(id, lock.StageStarted); s.Err != nil || r.faulty.Calls(locktest.Release) != 1 {
			t.Fatalf("state %+v", s)
		}
		r.faulty.Inject(locktest.Fault{Ops: []locktest.Op{locktest.Release}, Fail: true})
		r.Release(id, lock.Leave{PutBack: true})
		elapse(10 * ttl) // far beyond the ttl, which ends no record of what was started
		r.mustBe(id, keeper.PhaseReleasing)
		r.faulty.Heal()
		elapse(4 * time.Second)
		r.mustBe(id, keeper.PhaseReleased)
		r.claim(r.id("b", 0))
	})
}

func TestAReleaseThatFindsTheTickStartedHoldsItAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		r.claim(id)
		r.faulty.Inject(locktest.Fault{Ops: []locktest.Op{locktest.Renew}, LoseReply: true, Times: 1})
		r.Stamp(id, lock.StageStarted)
		synctest.Wait()
		r.drain()
		r.faulty.Inject(locktest.Fault{Ops: []locktest.Op{locktest.Renew}, Fail: true})
		r.Release(id, lock.Leave{})
		r.urgent(id)
		if s := r.mustStand(id, lock.StageStarted); !errors.Is(s.Err, lock.ErrUnknown) && !errors.Is(s.Err, lock.ErrStarted) {
			t.Fatalf("state %+v", s)
		}
		r.faulty.Heal()
		elapse(ttl)
		if s := r.mustStand(id, lock.StageStarted); s.Err != nil || !s.Acquired.Grant.Valid(time.Now()) {
			t.Fatalf("state %+v", s)
		}
	})
}

func TestAnAdoptedTickLearnsItsStage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := r.id("a", 0)
		old := r.claim(id).Acquired.Grant
		r.Stamp(id, lock.StageStarted)
		synctest.Wait()
		r.Forget(id)
		old.Stage, old.ValidUntil = "", time.Time{}
		r.Adopt(old, terms)
		synctest.Wait()
		r.mustStand(id, lock.StageStarted)
		if !r.Health().RoundDone {
			t.Error("the round is not done")
		}
	})
}

func TestAWaitingTickHearsThatItWasStartedAndThatItIsTooOld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id, other := r.id("a", 0), r.id("b", 0)
		r.elsewhere(other, lock.StageClaimed)
		w := want(id)
		w.Request.Ordered = true
		r.Acquire(w)
		r.drain()
		if s := r.mustBe(id, keeper.PhaseWaiting); s.Seen.Stage != lock.StageClaimed {
			t.Fatalf("state %+v", s)
		}
		elapse(ttl / 2)
		began := time.Now()
		r.elsewhere(other, lock.StageStarted)
		<-r.Events()
		if s := r.mustBe(id, keeper.PhaseWaiting); s.Seen.Stage != lock.StageStarted || time.Since(began) > time.Second {
			t.Fatalf("after %s: state %+v", time.Since(began), s)
		}
		r.memory.Delete(id.Key)
		<-r.Events()
		if s := r.mustBe(id, keeper.PhaseWaiting); !errors.Is(s.Err, lock.ErrTooOld) {
			t.Fatalf("state %+v", s)
		}
	})
}

func TestAHolderHearsOnceThatAnotherHomeWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newTicks(t)
		id := idOf(2, "a")
		r.hold(id)
		r.drain()
		ask := func() {
			_, err := r.memory.Acquire(t.Context(), lock.Request{Key: id.Key, Owner: "there/b/1", TTL: ttl, Settle: lock.Settle{Delay: ttl, Home: "there/"}})
			if !errors.Is(err, lock.ErrHeld) {
				t.Fatal(err)
			}
		}
		for range 5 {
			ask()
			elapse(terms.RenewInterval)
		}
		if events := r.drain(); len(events) != 1 || events[0].Urgent || !r.mustBe(id, keeper.PhaseHeld).Awaited {
			t.Fatalf("events %+v", events)
		}
		elapse(lock.AwaitedFor + terms.RenewInterval)
		if events := r.drain(); len(events) != 1 || r.mustBe(id, keeper.PhaseHeld).Awaited {
			t.Fatalf("events %+v", events)
		}
	})
}
