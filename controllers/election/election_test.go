package election_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/conch-dev/conch/controllers/election"
)

// candidate is a replica.
type candidate struct {
	*election.Election
	end  context.CancelFunc
	done chan struct{}
}

// start runs a replica; the loop ends with stop, or with the test.
func start(t *testing.T, s election.Leases, identity string, more ...func(*election.Options)) *candidate {
	t.Helper()
	o := election.Options{Leases: s, Name: "conch", Identity: identity}
	for _, m := range more {
		m(&o)
	}
	e, err := election.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{Election: e, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = e.Run(ctx)
	}()
	t.Cleanup(c.stop)
	return c
}

func (c *candidate) stop() {
	c.end()
	<-c.done
}

// pass lets fake time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until returns how long it took until a condition held, or fails.
func until(t *testing.T, within time.Duration, cond func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !cond() {
		if time.Since(begin) > within {
			t.Fatalf("did not happen within %s", within)
		}
		pass(10 * time.Millisecond)
	}
	return time.Since(begin)
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s took %s, want %s to %s", what, got, low, high)
	}
}

func TestTheFirstReplicaDecidesAtOnceAndTheSecondDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(time.Minute)
		if !a.Deciding() || b.Deciding() {
			t.Errorf("a decides: %t, b decides: %t", a.Deciding(), b.Deciding())
		}
		if got := s.written(); got < 29 || got > 32 {
			t.Errorf("a minute took %d writes, want one every two seconds", got)
		}
	})
}

func TestAReleasedLeaseIsTakenWithinTheNextLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(10 * time.Second)
		a.stop()
		if a.Deciding() {
			t.Error("a decides after it has ended")
		}
		between(t, "the handover", until(t, time.Minute, b.Deciding), 0, time.Second)
		if a.Epoch() >= b.Epoch() {
			t.Errorf("epochs %d and %d, want them to rise", a.Epoch(), b.Epoch())
		}
		if diff := cmp.Diff([]string{"b", "a"}, b.Deciders()); diff != "" {
			t.Errorf("deciders (-want +got):\n%s", diff)
		}
	})
}

func TestAKilledDeciderIsReplacedAfterTheLeaseRanOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		link := &link{store: s}
		killed := start(t, link, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(10 * time.Second)
		link.cut.Store(true)
		lost := until(t, time.Minute, func() bool { return !killed.Deciding() })
		taken := lost + until(t, time.Minute, b.Deciding)
		between(t, "the loss", lost, 8*time.Second, 10*time.Second)
		between(t, "the takeover", taken, 13*time.Second, 17*time.Second)
		if b.Epoch() != killed.Epoch()+1 {
			t.Errorf("epoch %d after %d", b.Epoch(), killed.Epoch())
		}
	})
}

func TestNobodyEverDecidesBesideAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		links := []*link{{store: s}, {store: s}, {store: s}}
		var all []*candidate
		for i, name := range []string{"a", "b", "c"} {
			all = append(all, start(t, links[i], name))
		}
		for step := range 6000 {
			if step%70 == 0 { // cut one or two off, in turns of seven seconds
				turn := step / 70
				for i := range links {
					links[i].cut.Store(turn%4 == i || turn%5 == i)
				}
			}
			pass(100 * time.Millisecond)
			deciding := 0
			for _, c := range all {
				if c.Deciding() {
					deciding++
				}
			}
			if deciding > 1 {
				t.Fatalf("%d replicas decide after %d steps", deciding, step)
			}
		}
	})
}

func TestADeciderThatWasPausedDoesNotDecideWhenItResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64 // what the clock went on while the process stood still
		a := start(t, &store{}, "a", func(o *election.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		})
		synctest.Wait()
		if !a.Deciding() {
			t.Fatal("a does not decide")
		}
		ahead.Store(int64(10 * time.Second))
		if a.Deciding() {
			t.Error("a decides right after it resumed")
		}
	})
}

func TestAnAPIServerThatIsAwayEndsTheRightToDecideAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*store, bool){
		"it refuses connections": func(s *store, on bool) { s.away = on },
		"it answers nothing":     func(s *store, on bool) { s.hung = on },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				a := start(t, s, "a")
				synctest.Wait()
				b := start(t, s, "b")
				pass(5 * time.Second)
				epoch := a.Epoch()
				s.set(func(s *store) { fault(s, true) })
				pass(10 * time.Second)
				if a.Deciding() || b.Deciding() {
					t.Errorf("a decides: %t, b decides: %t", a.Deciding(), b.Deciding())
				}
				pass(30 * time.Second)
				s.set(func(s *store) { fault(s, false) })
				until(t, 6*time.Second, func() bool { return a.Deciding() || b.Deciding() })
				if a.Deciding() && a.Epoch() != epoch {
					t.Errorf("epoch %d, want %d: nobody came between", a.Epoch(), epoch)
				}
			})
		})
	}
}

func TestAWriteWhoseAnswerIsLostGivesNoRightButTheLeaseStaysOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{deaf: true}
		a := start(t, s, "a")
		pass(4 * time.Second)
		if a.Deciding() {
			t.Error("a decides without an answer")
		}
		s.set(func(s *store) { s.deaf = false })
		until(t, 4*time.Second, a.Deciding)
		if a.Epoch() != 1 {
			t.Errorf("epoch %d, want 1", a.Epoch())
		}
	})
}

func TestTheRecordDecidesHowLongAContenderWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seconds   *int32
		low, high time.Duration
	}{
		"a longer lease than ours is waited for":  {ptr.To[int32](40), 40 * time.Second, 42 * time.Second},
		"a record without one takes our deadline": {nil, 10 * time.Second, 12 * time.Second},
		"a shorter one takes our deadline":        {ptr.To[int32](1), 10 * time.Second, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &coordinationv1.Lease{}
				l.Name, l.ResourceVersion = "conch", "1"
				l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To("gone"), tc.seconds
				a := start(t, &store{lease: l, version: 1}, "a")
				between(t, "the takeover", until(t, time.Minute, a.Deciding), tc.low, tc.high)
			})
		})
	}
}

func TestADeletedLeaseIsRemadeByItsHolderAndByNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		synctest.Wait()
		b := start(t, s, "b")
		pass(5 * time.Second)
		s.set(func(s *store) { s.lease = nil })
		pass(20 * time.Second)
		if !a.Deciding() || b.Deciding() {
			t.Errorf("a decides: %t, b decides: %t", a.Deciding(), b.Deciding())
		}
	})
}

func TestALeaseThatWasGivenToAnotherByHandIsLostAtTheNextWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := start(t, s, "a")
		pass(5 * time.Second)
		s.set(func(s *store) {
			other := s.lease.DeepCopy()
			other.Spec.HolderIdentity = ptr.To("operator")
			s.put(other)
		})
		between(t, "the loss", until(t, time.Minute, func() bool { return !a.Deciding() }), 0, 3*time.Second)
	})
}

func TestNewsOfEveryChangeReachesEverySubscriber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		e, err := election.New(election.Options{Leases: s, Name: "conch", Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		one, two := e.Changed(), e.Changed()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = e.Run(ctx) }()
		<-one
		<-two
		s.set(func(s *store) { s.away = true })
		<-one
		<-two
		if e.Deciding() {
			t.Error("the news of a loss came while the replica decides")
		}
		s.set(func(s *store) { s.away = false })
		<-one
		cancel()
		<-done
		<-two
	})
}

func TestOptionsThatDoNotFitAreAllNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := election.New(election.Options{
		Identity: "a,b", LeaseDuration: 1500 * time.Millisecond, RenewDeadline: 2 * time.Second, RetryPeriod: 2 * time.Second,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"client for Leases", "name of the Lease", `contain ","`, "whole seconds", "below lease duration", "at least two"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestWhoeverIsToldThatTheReplicaDoesNotDecideHearsOfTheLossAndOfTheReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64 // what the clock went on while the process stood still
		e, err := election.New(election.Options{Leases: &store{}, Name: "conch", Identity: "a", Now: func() time.Time {
			return time.Now().Add(time.Duration(ahead.Load()))
		}})
		if err != nil {
			t.Fatal(err)
		}
		changed := e.Changed()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = e.Run(ctx) }()
		<-changed
		ahead.Store(int64(time.Minute))
		if e.Deciding() { // asked before the loop had a chance to notice
			t.Error("decides after a minute of sleep")
		}
		<-changed
		pass(5 * time.Second)
		<-changed
		if !e.Deciding() {
			t.Error("does not decide again")
		}
		cancel()
		<-done
	})
}
