package main

import (
	"fmt"
	"slices"
	"time"
)

// result sums up the times of many handovers.
type result struct {
	n             int
	p50, p99, max time.Duration
}

func summarize(times []time.Duration) result {
	sorted := slices.Sorted(slices.Values(times))
	return result{n: len(sorted), p50: percentile(sorted, 50), p99: percentile(sorted, 99), max: sorted[len(sorted)-1]}
}

// percentile is by nearest rank: a value that was measured, and of few the highest.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}

// String is the line that others parse.
func (r result) String() string {
	return fmt.Sprintf("handover: %d handovers, p50 %dms, p99 %dms, max %dms",
		r.n, r.p50.Milliseconds(), r.p99.Milliseconds(), r.max.Milliseconds())
}
