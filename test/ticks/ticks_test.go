package main

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/program"
)

func TestMain(m *testing.M) {
	program.Quiet()
	goleak.VerifyTestMain(m)
}

// quick is the same as usual, only smaller and faster.
func quick() settings {
	o := usual()
	o.ticks, o.period, o.skew, o.longest = 12, 1500*time.Millisecond, 1200*time.Millisecond, 1500*time.Millisecond
	o.killEvery, o.cutEvery, o.ttl = 8*time.Second, 10*time.Second, 6*time.Second
	o.extra = "timings: {leaseDuration: 2s, renewDeadline: 1500ms, retryPeriod: 300ms}\n"
	return o
}

func TestTicksOfTwoClustersUnderKillsAndCutsRunOnceAndAreAccountedFor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := quick()
	t.Logf("seed %d", o.seed)
	w, err := raise(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()

	r, err := w.play(ctx)
	for _, line := range r.details {
		t.Log(line)
	}
	if err == nil {
		err = r.verdict()
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", r, err, w.tail(60))
	}
}
