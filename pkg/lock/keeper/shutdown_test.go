package keeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestTheEndRenewsEverythingOnceAndReleasesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 1000
		r := newRig(t)
		r.store.setFault(always(fault{reply: 5 * time.Millisecond}))
		for i := range n {
			r.Acquire(want(idOf(i, "a")))
		}
		elapse(3700 * time.Millisecond)
		r.store.plant(key(n), "there/b/1", time.Hour)
		r.Acquire(want(idOf(n, "a")))
		r.store.forgetCalls()
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Fatalf("took %s", took)
		}
		for _, c := range r.store.called("") {
			if c.op == "release" || c.op == "abandon" {
				t.Fatalf("%s of %v", c.op, c.keys)
			}
		}
		for i := range n {
			if left := r.store.remaining(key(i)); left < ttl-50*time.Millisecond {
				t.Fatalf("%s has %s left: it was not renewed", key(i), left)
			}
		}
		if _, open := <-r.Events(); open {
			t.Fatal("events after the end")
		}
	})
}

// C09: releases that are due when the process is told to end are carried out on a context of
// their own.
func TestReleasesThatWereOrderedAreCarriedOutAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 50
		r := newRig(t)
		for i := range n {
			r.hold(idOf(i, "a"))
		}
		r.hold(idOf(n, "stays"))
		r.store.setFault(always(cut))
		for i := range n / 2 {
			r.Release(idOf(i, "a"), lock.Leave{}) // these wait for their next try
		}
		elapse(time.Second)
		r.store.setFault(always(fault{delay: 100 * time.Millisecond}))
		for i := n / 2; i < n; i++ {
			r.Release(idOf(i, "a"), lock.Leave{})
		}
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Fatalf("took %s", took)
		}
		for i := range n {
			if h := r.store.holder(key(i)); h != "" {
				t.Fatalf("%s still holds %s", h, key(i))
			}
		}
		if r.store.holder(key(n)) == "" {
			t.Fatal("what was not ordered to go is gone")
		}
	})
}

func TestTheEndIsShortWhenTheStoreHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 100 {
			r.hold(idOf(i, "a"))
		}
		r.store.setFault(always(fault{hang: true}))
		for i := range 50 {
			r.Release(idOf(i, "a"), lock.Leave{})
		}
		r.Acquire(want(idOf(100, "a")))
		elapse(time.Second)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Fatalf("took %s", took)
		}
	})
}

func TestTheEndSparesTheOthersWhenOnePanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 40
		r := newRig(t)
		for i := range n {
			r.hold(idOf(i, "a"))
		}
		elapse(100 * time.Millisecond)
		r.store.setFault(func(c call) fault {
			if c.op == "renew" && c.has(key(11)) {
				return fault{panics: "boom"}
			}
			return pass
		})
		r.stop()
		for i := range n {
			if left := r.store.remaining(key(i)); i != 11 && left != ttl {
				t.Fatalf("%s has %s left", key(i), left)
			}
		}
		r.mustBe(idOf(11, "a"), keeper.PhaseLost)
	})
}

func TestRunServesOrdersThatWereGivenBeforeAndRunsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newIdleRig(t)
		r.Acquire(want(idOf(1, "a")))
		r.mustBe(idOf(1, "a"), keeper.PhaseWaiting)
		r.start()
		r.mustBe(idOf(1, "a"), keeper.PhaseHeld)
		if err := r.Run(context.Background()); err == nil {
			t.Fatal("ran twice")
		}
		r.stop()
		r.Release(idOf(1, "a"), lock.Leave{}) // nobody serves it, and nobody is hurt
		synctest.Wait()
		r.mustBe(idOf(1, "a"), keeper.PhaseReleasing)
	})
}
