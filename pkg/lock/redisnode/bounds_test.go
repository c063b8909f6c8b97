package redisnode_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

// C77: each call returns within its own limit, although the caller sets none and the server is silent.
func TestEveryCallIsBounded(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	g := s.acquire(request(ann)).Grant
	p.Set(proxy.Rule{Mode: proxy.BlackHole})
	began := time.Now()
	calls := s.everyCall(g)
	took := time.Since(began)
	for name, err := range calls {
		unknown(t, name, err, lock.ReasonTimeout)
	}
	if limit := time.Duration(len(calls)) * brief * 3 / 2; took > limit { // a second try would take it to twice as long
		t.Errorf("%d calls took %s, more than %s", len(calls), took, limit)
	}
}

// C77: the limit is for all of a call, not for each of the steps that a new connection takes.
func TestACallOnANewConnectionIsBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	p.Set(proxy.Rule{Mode: proxy.Delay, Delay: brief * 7 / 10})
	began := time.Now()
	_, err := s.Acquire(t.Context(), request(ann))
	took := time.Since(began)
	unknown(t, "acquire", err, lock.ReasonTimeout)
	if took > brief*3/2 {
		t.Errorf("took %s with a limit of %s", took, brief)
	}
}

// C77: a renewal of many keys is bounded as one call, not as one for each batch.
func TestRenewalOfManyIsBounded(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	g := s.acquire(request(ann)).Grant
	extensions := make([]lock.Extension, 2000)
	for i := range extensions {
		extensions[i] = lock.Extension{Grant: g, TTL: ttl}
	}
	p.Set(proxy.Rule{Mode: proxy.BlackHole})
	began := time.Now()
	for _, r := range s.Renew(t.Context(), extensions) {
		if !errors.Is(r.Err, lock.ErrUnknown) {
			t.Fatalf("renew: %v", r.Err)
		}
	}
	if took := time.Since(began); took > 4*brief {
		t.Errorf("took %s", took)
	}
}

func TestACallerThatGivesUpIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	g := s.acquire(request(ann)).Grant
	p.Set(proxy.Rule{Mode: proxy.HoldReply})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- s.Renew(ctx, []lock.Extension{{Grant: g, TTL: ttl}})[0].Err }()
	NewWithT(t).Eventually(func() int { return p.Count("HELLO") }, patience).Should(BeNumerically(">", 1)) // the renewal's own connection
	began := time.Now()
	cancel()
	unknown(t, "renew", <-answer, lock.ReasonNoReply)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("took %s", took)
	}
	p.Heal()
}

// After a break each connection in the pool is dead. One is found out by use, and the others must be before they are used.
func TestDeadConnectionsAreNotTriedOneByOne(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	s.acquire(request(ann))
	p.Set(proxy.Rule{Mode: proxy.HoldReply, Commands: []string{"EVALSHA"}})
	const idle = 5
	var all sync.WaitGroup
	for range idle {
		all.Go(func() { _, _ = s.Inspect(t.Context(), []lock.Key{key}) })
	}
	NewWithT(t).Eventually(func() int { return p.Count("EVALSHA") }, patience).Should(BeNumerically(">=", idle))
	p.Heal()
	all.Wait()
	p.Break()
	if _, err := s.Acquire(t.Context(), request(ann)); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, shared.Addr())
	b, err := redisnode.New(redisnode.Options{Addresses: []string{p.Addr()}, DB: int(spaces.Add(1)), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p.Set(proxy.Rule{Mode: proxy.HoldReply, Commands: []string{"EVALSHA"}})
	answer := make(chan error, 1)
	go func() { _, err := b.Acquire(t.Context(), request(ann)); answer <- err }()
	NewWithT(t).Eventually(func() int { return p.Count("EVALSHA") }, patience).Should(Equal(1))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("acquire: %v", err)
	}
	_, err = b.Acquire(t.Context(), request(ann))
	unknown(t, "after close", err, lock.ReasonOther)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// C75: whoever waits for answers on the main pool does not keep a renewal waiting.
func TestRenewalsAreNotStarvedByOthers(t *testing.T) {
	t.Parallel()
	s, p := behind(t, func(o *redisnode.Options) { o.PoolSize, o.RenewPoolSize = 2, 1 })
	extensions := make([]lock.Extension, 300)
	for i := range extensions {
		r := lock.Request{Key: lock.Key{Name: fmt.Sprint("k", i)}, Owner: ann, TTL: ttl}
		extensions[i] = lock.Extension{Grant: s.acquire(r).Grant, TTL: ttl}
	}
	p.Set(proxy.Rule{Mode: proxy.HoldReply, Contains: "waiter/"})
	var waiters sync.WaitGroup
	for i := range 300 {
		waiters.Go(func() {
			_, _ = s.Acquire(t.Context(), lock.Request{Key: key, Owner: lock.NewOwner("waiter", fmt.Sprint(i)), TTL: ttl})
		})
	}
	NewWithT(t).Eventually(func() bool { return s.do("EXISTS", s.name(key)) == int64(1) }, patience).Should(BeTrue())
	for range 5 {
		for _, r := range s.Renew(t.Context(), extensions) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	p.Heal()
	waiters.Wait()
}

// C83: a server that is away costs a bounded number of goroutines and connections, and none afterwards. It does not run in parallel,
// because it counts.
func TestNothingLeaksWhileTheServerIsAway(t *testing.T) {
	s, p := behind(t, func(o *redisnode.Options) { o.Timeout = 20 * time.Millisecond })
	NewWithT(t).Eventually(func() error { _, err := s.Acquire(t.Context(), request(ann)); return err }, patience).Should(Succeed())
	before := runtime.NumGoroutine()
	for _, mode := range []proxy.Mode{proxy.BlackHole, proxy.Refuse, proxy.Cut} {
		p.Set(proxy.Rule{Mode: mode})
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for range 5 {
					_, err := s.Acquire(t.Context(), request(lock.NewOwner("waiter", fmt.Sprint(i))))
					if !errors.Is(err, lock.ErrUnknown) {
						t.Errorf("acquire: %v", err)
					}
				}
			})
		}
		all.Wait()
	}
	p.Heal()
	g := NewWithT(t)
	g.Eventually(func() error { _, err := s.Acquire(t.Context(), request(ann)); return err }, patience).Should(Succeed())
	g.Eventually(p.Links, patience).Should(BeNumerically("<=", 2*redisnode.DefaultPoolSize))
	// Each connection costs the proxy three goroutines, and the pool keeps a few.
	g.Eventually(runtime.NumGoroutine, patience).Should(BeNumerically("<=", before+3*2*redisnode.DefaultPoolSize))
}
