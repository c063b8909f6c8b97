package keeper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

func TestALongerTTLIsSentAtOnceAndAShorterOneIsHonouredHereFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.hold(id)
		long, short := keeper.Terms{TTL: time.Hour}, keeper.Terms{TTL: 5 * time.Second}
		r.Retime(id, long, false)
		synctest.Wait()
		if left := r.store.remaining(id.Key); left != time.Hour {
			t.Fatalf("the store has %s left", left)
		}
		if s := r.mustBe(id, keeper.PhaseHeld); s.Terms.RenewInterval != 10*time.Minute {
			t.Fatalf("terms %+v", s.Terms)
		}

		r.store.setFault(always(cut))
		r.Retime(id, short, true)
		if left := time.Until(r.mustBe(id, keeper.PhaseHeld).Acquired.Grant.ValidUntil); left > 5*time.Second {
			t.Fatalf("%s left here, although the store may have been shortened", left)
		}
		elapse(4 * time.Second)
		r.store.setFault(always(pass))
		elapse(short.TTL / 12)
		if left := r.store.remaining(id.Key); left > 5*time.Second || left < 4*time.Second {
			t.Fatalf("the store has %s left", left)
		}
		before := len(r.store.called("renew"))
		for range 100 {
			r.Retime(id, short, true)
		}
		synctest.Wait()
		if n := len(r.store.called("renew")); n != before {
			t.Fatalf("repeating the order sent %d renewals", n-before)
		}
		elapse(time.Minute)
		for _, c := range r.store.called("renew")[before:] {
			if c.renewed[0].Shorten {
				t.Fatal("still shortening after the store has answered")
			}
		}
		r.mustBe(id, keeper.PhaseHeld)
	})
}

func TestARenewalThatWasUnderWayDoesNotUndoAShorterTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.Acquire(keeper.Want{Request: lock.Request{Key: id.Key, Owner: id.Owner, TTL: time.Minute}})
		synctest.Wait()
		r.store.setFault(func(c call) fault {
			if c.op == "renew" && !c.renewed[0].Shorten {
				return fault{reply: 500 * time.Millisecond}
			}
			return fault{hang: c.op == "renew"}
		})
		for len(r.store.called("renew")) == 0 {
			elapse(100 * time.Millisecond)
		}
		r.Retime(id, keeper.Terms{TTL: 10 * time.Second}, true)
		elapse(600 * time.Millisecond)
		if left := time.Until(r.mustBe(id, keeper.PhaseHeld).Acquired.Grant.ValidUntil); left > 10*time.Second {
			t.Fatalf("%s left", left)
		}
		calls := r.store.called("renew")
		if last := calls[len(calls)-1]; !last.renewed[0].Shorten || time.Since(last.at) > 250*time.Millisecond {
			t.Fatal("the new ttl was not sent when the old renewal had ended")
		}
	})
}

func TestTermsThatChangeWhileWaitingHoldForTheGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		id := idOf(1, "a")
		r.store.setFault(always(fault{reply: 200 * time.Millisecond}))
		r.Acquire(want(id))
		elapse(100 * time.Millisecond)
		r.Retime(id, keeper.Terms{TTL: time.Minute}, false)
		elapse(500 * time.Millisecond)
		if s := r.mustBe(id, keeper.PhaseHeld); s.Acquired.Grant.TTL != time.Minute || r.store.remaining(id.Key) < 59*time.Second {
			t.Fatalf("state %+v", s)
		}
	})
}
