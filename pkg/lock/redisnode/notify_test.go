package redisnode_test

import (
	"context"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/test/proxy"
)

// listening runs Notify until the test ends, and returns what it says.
func (s *space) listening() (hints <-chan lock.Key, missed <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	h, m, ended := make(chan lock.Key, 100), make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- s.Notify(ctx, func(k lock.Key) { h <- k }, func() { m <- struct{}{} }) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("notify: %v", err)
		}
	})
	return h, m
}

func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(2 * patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// C51: a subscription that broke is made again, and says that something may have been missed.
func TestABrokenSubscriptionIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	hints, missed := s.listening()
	within(t, "the first subscription", missed)
	for range 3 {
		p.Break()
		within(t, "another subscription", missed)
		g := s.acquire(request(ann)).Grant
		if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
			t.Fatal(err)
		}
		if k := within(t, "a hint", hints); k != key {
			t.Fatalf("hint at %+v", k)
		}
	}
}

func TestASubscriptionWaitsForItsServer(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	p.Set(proxy.Rule{Mode: proxy.Refuse})
	_, missed := s.listening()
	select {
	case <-missed:
		t.Fatal("subscribed to nothing")
	case <-time.After(brief):
	}
	p.Heal()
	within(t, "the subscription", missed)
}

func TestHintsOfOtherPrefixesAreNotHeard(t *testing.T) {
	t.Parallel()
	s, other := open(t, shared.Addr()), open(t, shared.Addr())
	hints, missed := s.listening()
	within(t, "the subscription", missed)
	if err := other.Release(t.Context(), other.acquire(request(bob)).Grant, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	mine := lock.Key{Name: "mine"}
	a := s.acquire(lock.Request{Key: mine, Owner: ann, TTL: ttl})
	if err := s.Release(t.Context(), a.Grant, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	if k := within(t, "a hint", hints); k != mine {
		t.Fatalf("hint at %+v", k)
	}
}

func TestAUserWhoMayNotSubscribeIsTold(t *testing.T) {
	t.Parallel()
	server := own(t, "--user", "deaf", "on", ">"+canary, "~*", "resetchannels", "+@all")
	s := open(t, server.Addr(), credentials("deaf", canary))
	err := s.Notify(t.Context(), func(lock.Key) {}, func() {})
	unknown(t, "notify", err, lock.ReasonNoPerm)
	// It does not keep that user from locking: hints are only hints.
	if err := s.Release(t.Context(), s.acquire(request(ann)).Grant, lock.Leave{}); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestNotifyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	p.Set(proxy.Rule{Mode: proxy.BlackHole})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Notify(ctx, func(lock.Key) {}, func() {}) }()
	cancel()
	if err := within(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
}
