package redisnode_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

// C01, M1: the connection breaks after the script ran. The client sends it again by itself, which must not end in "held by another".
func TestLostReplyOnABrokenConnectionIsOurAcquire(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	s.acquire(request(ann))
	if err := s.Abandon(t.Context(), key, ann); err != nil {
		t.Fatal(err)
	}
	p.Set(proxy.Rule{Mode: proxy.Cut, Commands: []string{"EVALSHA"}, Times: 1})
	a, err := s.Acquire(t.Context(), request(ann))
	if err != nil || !a.Again || a.Before != lock.EndedReleased || s.view().Token != a.Grant.Token {
		t.Fatalf("acquired %+v, %v", a, err)
	}
}

// C01, M1: the reply is swallowed and the connection stays.
func TestLostReplyOnAnOpenConnectionIsUnknownAndThenOurs(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	p.Set(proxy.Rule{Mode: proxy.SwallowReply, Commands: []string{"EVALSHA", "EVAL"}})
	_, err := s.Acquire(t.Context(), request(ann))
	unknown(t, "acquire", err, lock.ReasonTimeout)
	p.Heal()
	s.acquire(request(ann))
	if err := s.Abandon(t.Context(), key, ann); err != nil {
		t.Fatal(err)
	}
	s.acquire(request(bob))
}

// C81: acquires that timed out leave nothing behind once they are abandoned.
func TestAbandonedAcquiresLeaveNoKeys(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	s.acquire(request(ann))
	p.Set(proxy.Rule{Mode: proxy.SwallowReply, Commands: []string{"EVALSHA"}})
	var all sync.WaitGroup
	requests := make([]lock.Request, 20)
	for i := range requests {
		requests[i] = lock.Request{Key: lock.Key{Name: fmt.Sprint("k", i)}, Owner: bob, TTL: ttl}
		all.Go(func() {
			_, err := s.Acquire(t.Context(), requests[i])
			if !errors.Is(err, lock.ErrUnknown) {
				t.Errorf("acquire: %v", err)
			}
		})
	}
	all.Wait()
	p.Heal()
	for _, r := range requests {
		if err := s.Abandon(t.Context(), r.Key, bob); err != nil {
			t.Error(err)
		}
		if s.do("EXISTS", s.name(r.Key)) != int64(0) {
			t.Errorf("%s was left behind", r.Key)
		}
	}
}

// C13: the answer arrives when the lease is over, and another one may have the key.
func TestAnswerThatTookTheWholeLeaseCountsForNothing(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	short := lock.Request{Key: key, Owner: ann, TTL: lock.MinTTL}
	ctx := t.Context()

	late := func(call func() error) {
		t.Helper()
		p.Set(proxy.Rule{Mode: proxy.HoldReply, Contains: string(ann)})
		answer := make(chan error, 1)
		began := s.do("HGET", s.helper(key, "last"), "validUntil")
		go func() { answer <- call() }()
		NewWithT(t).Eventually(func() bool {
			return s.do("HGET", s.helper(key, "last"), "validUntil") != began && s.do("EXISTS", s.name(key)) == int64(0)
		}, patience, 5*time.Millisecond).Should(BeTrue())
		p.Heal()
		unknown(t, "late answer", <-answer, lock.ReasonNoReply)
	}
	late(func() error { _, err := s.Acquire(ctx, short); return err })

	a, err := s.Acquire(ctx, lock.Request{Key: key, Owner: ann, TTL: 10 * lock.MinTTL})
	if err != nil {
		t.Fatal(err)
	}
	late(func() error {
		return s.Renew(ctx, []lock.Extension{{Grant: a.Grant, TTL: lock.MinTTL, Shorten: true}})[0].Err
	})
	if err := s.Abandon(ctx, key, ann); err != nil {
		t.Fatal(err)
	}
	if b := s.acquire(request(bob)); b.Grant.FencingToken <= a.Grant.FencingToken {
		t.Fatalf("fencing token %d after %d", b.Grant.FencingToken, a.Grant.FencingToken)
	}
}

// C73: an answer that belongs to another question is never taken, and the connections are made anew.
func TestShiftedAnswersAreRefused(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	extensions := make([]lock.Extension, 5)
	for i := range extensions {
		r := lock.Request{Key: lock.Key{Name: fmt.Sprint("k", i)}, Owner: lock.NewOwner("ann", fmt.Sprint(i)), TTL: ttl}
		extensions[i] = lock.Extension{Grant: s.acquire(r).Grant, TTL: ttl}
	}
	renewed := func() (refused int) {
		for _, r := range s.Renew(t.Context(), extensions) {
			if r.Err != nil {
				unknown(t, "renew", r.Err, lock.ReasonOther)
				refused++
			}
		}
		return refused
	}
	renewed()
	links := p.Links()
	p.Set(proxy.Rule{Mode: proxy.StaleReply, Contains: string(extensions[3].Grant.Token)})
	if n := renewed(); n != 1 {
		t.Fatalf("%d of 5 renewals were refused, one was answered wrongly", n)
	}
	NewWithT(t).Eventually(p.Links, patience, 5*time.Millisecond).Should(BeNumerically("<", links))
	p.Heal()
	if n := renewed(); n != 0 {
		t.Fatalf("%d renewals were refused after the connection was made anew", n)
	}
}

// C73: the same renewal's earlier answer is not taken for the later one, whose lease is younger.
func TestAnEarlierAnswerToTheSameQuestionIsRefused(t *testing.T) {
	t.Parallel()
	s, p := behind(t, func(o *redisnode.Options) { o.RenewPoolSize = 1 })
	g := s.acquire(request(ann)).Grant
	if err := s.renew(g); err != nil {
		t.Fatal(err)
	}
	p.Set(proxy.Rule{Mode: proxy.StaleReply, Contains: string(g.Token), Times: 1})
	unknown(t, "renew", s.renew(g), lock.ReasonOther)
	if err := s.renew(g); err != nil {
		t.Fatal(err)
	}
}

// C73: replies that come later than the read timeout belong to connections that are gone.
func TestSlowRepliesNeverMix(t *testing.T) {
	t.Parallel()
	s, p := behind(t, func(o *redisnode.Options) { o.Timeout = 30 * time.Millisecond })
	var all sync.WaitGroup
	for i := range 4 {
		r := lock.Request{Key: lock.Key{Name: fmt.Sprint("k", i)}, Owner: ann, TTL: ttl}
		p.Heal()
		var a lock.Acquired
		NewWithT(t).Eventually(func() (err error) { a, err = s.Acquire(t.Context(), r); return err }, patience).Should(Succeed())
		all.Go(func() {
			for range 20 {
				err := s.renew(a.Grant)
				if err != nil && !errors.Is(err, lock.ErrUnknown) {
					t.Errorf("renew: %v", err)
				}
			}
		})
	}
	for i := range 20 {
		p.Set(proxy.Rule{Mode: proxy.Delay, Delay: time.Duration(i%5*15) * time.Millisecond})
		pause(t.Context(), 10*time.Millisecond)
	}
	all.Wait()
}

// pause waits for real time to pass where the passing of time is what is tested.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
