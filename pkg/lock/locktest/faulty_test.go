package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/locktest"
	"github.com/conch-dev/conch/pkg/lock/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key     = lock.Key{Name: "k"}
	request = lock.Request{Key: key, Owner: "ann/1", TTL: time.Minute}
)

func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(*testing.T) locktest.Harness {
		now := time.Now()
		b := memory.New(memory.Options{Now: func() time.Time { return now }})
		return locktest.Harness{
			Backend: locktest.Wrap(b), Store: b, Now: func() time.Time { return now }, Advance: func(d time.Duration) { now = now.Add(d) },
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault  locktest.Fault
		done   bool
		reason lock.Reason
	}{
		"a failed call does nothing":                {locktest.Fault{Fail: true, Reason: lock.ReasonNoAuth}, false, lock.ReasonNoAuth},
		"a lost reply is of a call that was done":   {locktest.Fault{LoseReply: true}, true, lock.ReasonUnreachable},
		"a call that hangs does nothing":            {locktest.Fault{Hang: true}, false, lock.ReasonUnreachable},
		"a slow call that is given up does nothing": {locktest.Fault{Slow: time.Hour}, false, lock.ReasonUnreachable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := locktest.Wrap(memory.New(memory.Options{}))
				f.Inject(tc.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := f.Acquire(ctx, request)
				if !errors.Is(err, lock.ErrUnknown) || lock.ReasonOf(err) != tc.reason {
					t.Errorf("acquire: %v", err)
				}
				f.Heal()
				a, err := f.Acquire(t.Context(), request)
				if err != nil || a.Again != tc.done {
					t.Errorf("acquired %+v, %v", a, err)
				}
			})
		})
	}
}

func TestFaultBefallsWhatItIsFor(t *testing.T) {
	t.Parallel()
	f := locktest.Wrap(memory.New(memory.Options{}))
	f.Inject(locktest.Fault{Ops: []locktest.Op{locktest.Renew}, Key: key, Times: 2, LoseReply: true})
	a, err := f.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	renew := func() error {
		return f.Renew(t.Context(), []lock.Extension{{Grant: a.Grant, TTL: time.Minute}})[0].Err
	}
	for i, want := range []bool{true, true, false} {
		if err := renew(); errors.Is(err, lock.ErrUnknown) != want {
			t.Errorf("renewal %d: %v", i, err)
		}
	}
	if f.Calls(locktest.Renew) != 3 || f.Calls(locktest.Acquire) != 1 {
		t.Errorf("counted %d renewals, %d acquires", f.Calls(locktest.Renew), f.Calls(locktest.Acquire))
	}
}

func TestHealEndsACallThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := locktest.Wrap(memory.New(memory.Options{}))
		f.Inject(locktest.Fault{Hang: true})
		answer := make(chan error, 1)
		go func() { answer <- f.Abandon(context.Background(), key, "ann/1") }()
		synctest.Wait()
		f.Heal()
		if err := <-answer; !errors.Is(err, lock.ErrUnknown) {
			t.Errorf("abandon: %v", err)
		}
	})
}
