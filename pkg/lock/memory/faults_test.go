package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/memory"
)

const (
	ann = lock.Owner("home/ann/a")
	bob = lock.Owner("away/bob/b")
	ttl = time.Minute
)

var key = lock.Key{Name: "k"}

func request(o lock.Owner) lock.Request { return lock.Request{Key: key, Owner: o, TTL: ttl} }

func acquire(t *testing.T, b *memory.Backend, r lock.Request) lock.Acquired {
	t.Helper()
	a, err := b.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheZeroOptionsUseTheRealClock(t *testing.T) {
	t.Parallel()
	a := acquire(t, memory.New(memory.Options{}), request(ann))
	if left := time.Until(a.Grant.ValidUntil); left <= 0 || left >= ttl {
		t.Fatalf("valid for %s", left)
	}
}

// C13
func TestAnAnswerThatTookTheWholeLeaseCountsForNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := memory.New(memory.Options{Now: c.Now})
	b.Fail(func(context.Context, string) error { c.Advance(ttl); return nil })
	_, err := b.Acquire(t.Context(), request(ann))
	if lock.ReasonOf(err) != lock.ReasonNoReply {
		t.Fatalf("acquire: %v", err)
	}
	b.Fail(nil)
	g := acquire(t, b, request(ann)).Grant
	b.Fail(func(context.Context, string) error { c.Advance(ttl - time.Millisecond); return nil })
	if err := b.Renew(t.Context(), []lock.Extension{{Grant: g, TTL: ttl}})[0].Err; lock.ReasonOf(err) != lock.ReasonNoReply {
		t.Fatalf("renew: %v", err)
	}
}

func TestAFaultTakesThePlaceOfTheAnswer(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	broken := errors.New("broken")
	b.Fail(func(_ context.Context, operation string) error {
		if operation == "acquire" {
			return broken
		}
		return nil
	})
	if _, err := b.Acquire(t.Context(), request(ann)); !errors.Is(err, lock.ErrUnknown) || !errors.Is(err, broken) {
		t.Fatalf("acquire: %v", err)
	}
	if views, err := b.Inspect(t.Context(), []lock.Key{key}); err != nil || views[0].State != lock.ViewFree {
		t.Fatalf("seen %+v, %v", views, err)
	}
}

func TestACallThatHangsEndsWithItsContextAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	hanging := make(chan struct{})
	b.Fail(func(ctx context.Context, operation string) error {
		if operation != "acquire" {
			return nil
		}
		close(hanging)
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { _, err := b.Acquire(ctx, request(ann)); answer <- err }()
	<-hanging
	if err := b.Abandon(t.Context(), key, ann); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-answer; lock.ReasonOf(err) != lock.ReasonNoReply {
		t.Fatalf("acquire: %v", err)
	}
}

// C63
func TestARestoredSnapshotIsALaggingReplica(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := memory.New(memory.Options{Now: c.Now})
	first := acquire(t, b, request(ann)).Grant
	behind := b.Snapshot()
	if err := b.Release(t.Context(), first, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	second := acquire(t, b, request(bob)).Grant
	b.Restore(behind)
	if err := b.Renew(t.Context(), []lock.Extension{{Grant: second, TTL: ttl}})[0].Err; !errors.Is(err, lock.ErrLost) {
		t.Fatalf("renew: %v", err)
	}
	c.Advance(ttl + time.Millisecond)
	r := request(bob)
	r.Floor = second.FencingToken + 1
	if a := acquire(t, b, r); a.Before != lock.EndedForgotten || a.Grant.FencingToken <= second.FencingToken {
		t.Fatalf("acquired %+v", a)
	}
}

func TestListenersHearWhatTheyMissed(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	missed, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.Notify(ctx, func(lock.Key) {}, func() { missed <- struct{}{} }) }()
	<-missed
	go b.Miss()
	<-missed
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
