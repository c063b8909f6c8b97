package main

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTenHandoversTakeLessThanASecondEach(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := raise(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	times, err := s.handovers(ctx, 10)
	if err != nil {
		t.Fatalf("%v\n--- conch\n%s", err, s.Conch.Tail(25))
	}
	r := summarize(times)
	t.Log(machine())
	t.Log(r)
	if r.p99 >= limit {
		t.Errorf("p99 is %s, want less than %s\n--- conch\n%s", r.p99, limit, s.Conch.Tail(40))
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	upTo := func(n int) []time.Duration {
		var all []time.Duration
		for i := n; i > 0; i-- {
			all = append(all, time.Duration(i)*time.Millisecond)
		}
		return all
	}
	tests := map[string]struct {
		times []time.Duration
		want  string
	}{
		"of one, each is that one":                {times: upTo(1), want: "handover: 1 handovers, p50 1ms, p99 1ms, max 1ms"},
		"of ten, p99 is the highest":              {times: upTo(10), want: "handover: 10 handovers, p50 5ms, p99 10ms, max 10ms"},
		"of a hundred, p99 is the second highest": {times: upTo(100), want: "handover: 100 handovers, p50 50ms, p99 99ms, max 100ms"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := summarize(tc.times).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
