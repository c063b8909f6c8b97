package keeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
	"github.com/conch-dev/conch/pkg/lock/memory"
)

// The tests of this file run keepers over the reference backend.

func runOver(t *testing.T, b lock.Backend) *keeper.Keeper {
	t.Helper()
	k, err := keeper.New(keeper.Options{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return k
}

func mustBe(t *testing.T, k *keeper.Keeper, id keeper.ID, phase keeper.Phase) keeper.State {
	t.Helper()
	s, _ := k.State(id)
	if s.Phase != phase {
		t.Fatalf("%s: phase %q (error: %v), want %q", id.Owner, s.Phase, s.Err, phase)
	}
	return s
}

func TestAReleaseInOneProcessIsAGrantInAnotherAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		one, two := runOver(t, store), runOver(t, store)
		a, b := idOf(1, "a"), idOf(1, "b")
		one.Acquire(want(a))
		synctest.Wait()
		held := mustBe(t, one, a, keeper.PhaseHeld)
		two.Acquire(want(b))
		elapse(time.Minute)
		if s := mustBe(t, two, b, keeper.PhaseWaiting); s.Seen.Owner != a.Owner || s.Seen.FencingToken != held.Acquired.Grant.FencingToken {
			t.Fatalf("seen %+v", s.Seen)
		}
		one.Release(a, lock.Leave{})
		elapse(50 * time.Millisecond)
		s := mustBe(t, two, b, keeper.PhaseHeld)
		if s.Acquired.Before != lock.EndedReleased || s.Acquired.Grant.FencingToken <= held.Acquired.Grant.FencingToken {
			t.Fatalf("granted %+v", s.Acquired)
		}
	})
}

func TestEveryReplicaCanKeepTheSameGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		one, two := runOver(t, store), runOver(t, store)
		id := idOf(1, "a")
		one.Acquire(want(id))
		synctest.Wait()
		g := mustBe(t, one, id, keeper.PhaseHeld).Acquired.Grant
		g.ValidUntil = time.Time{} // as it is read from a status
		two.Adopt(g, terms)
		elapse(time.Minute)
		one.Forget(id) // one is gone, and the other goes on
		elapse(time.Minute)
		if s := mustBe(t, two, id, keeper.PhaseHeld); !s.Acquired.Grant.Valid(time.Now()) {
			t.Fatal("not valid")
		}
	})
}

func TestATenureWhoseKeyVanishedIsContinuedUnlessSomebodyCameBetween(t *testing.T) {
	cases := map[string]struct {
		between bool
		want    keeper.Phase
	}{
		"nobody came":   {false, keeper.PhaseHeld},
		"somebody came": {true, keeper.PhaseLost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				k := runOver(t, store)
				id, other := idOf(1, "a"), idOf(1, "b")
				k.Acquire(want(id))
				synctest.Wait()
				before := mustBe(t, k, id, keeper.PhaseHeld).Acquired.Grant
				store.Delete(id.Key)
				elapse(terms.RenewInterval)
				if s := mustBe(t, k, id, keeper.PhaseLost); s.Seen.State != lock.ViewFree {
					t.Fatalf("seen %+v", s.Seen)
				}
				if c.between {
					k.Acquire(want(other))
					synctest.Wait()
					k.Release(other, lock.Leave{})
					synctest.Wait()
				}
				k.Forget(id)
				w := want(id)
				w.Request.Since = before.FencingToken
				k.Acquire(w)
				synctest.Wait()
				s := mustBe(t, k, id, c.want)
				if c.want == keeper.PhaseHeld && s.Acquired.Grant.FencingToken <= before.FencingToken {
					t.Fatalf("fencing token %d after %d", s.Acquired.Grant.FencingToken, before.FencingToken)
				}
			})
		})
	}
}
