package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/test/ledger"
)

// result sums up a run.
type result struct {
	ticks, doubles, overlaps, missed int
	// ran is how many ticks were run, lost how many were recorded as started and never worked, and skipped how many nobody started.
	ran, lost, skipped int
	// wrong is whatever else does not add up.
	wrong   []string
	details []string
}

// String is the line that others parse.
func (r result) String() string {
	return fmt.Sprintf("ticks: %d ticks, %d doubles, %d overlaps, %d missed", r.ticks, r.doubles, r.overlaps, r.missed)
}

// verdict is nil if everything is as it should be. A run of which hardly a tick ran shows nothing.
func (r result) verdict() error {
	var errs []error
	if r.doubles+r.overlaps+r.missed > 0 {
		errs = append(errs, fmt.Errorf("%d doubles, %d overlaps and %d missed ticks, want none", r.doubles, r.overlaps, r.missed))
	}
	if 2*r.ran < r.ticks {
		errs = append(errs, fmt.Errorf("%d of %d ticks ran, want more than half", r.ran, r.ticks))
	}
	for _, w := range r.wrong {
		errs = append(errs, errors.New(w))
	}
	return errors.Join(errs...)
}

// judge holds what the processes noted against what the clusters say about each tick. The ledger has the first word: what it does not
// have did not run, whatever anybody says.
func judge(jobs []string, entries []ledger.Entry, says map[string]map[string]told) result {
	intervals := ledger.Intervals(entries)
	r := result{ticks: len(jobs), overlaps: len(ledger.Overlaps(intervals))}
	if err := ledger.Check(entries); err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	starts := map[string][]string{} // Job -> cluster of each process
	for _, i := range intervals {
		job := i.Pod[:max(strings.LastIndexByte(i.Pod, '-'), 0)]
		starts[job] = append(starts[job], i.Cluster)
	}
	for _, job := range jobs {
		r.judgeTick(job, starts[job], says)
		delete(starts, job)
	}
	for job := range starts {
		r.wrong = append(r.wrong, fmt.Sprintf("%s was started, and is no tick", job))
	}
	r.details = append(r.details, fmt.Sprintf("%d ticks ran, %d were started and came to nothing, %d were skipped in both clusters", r.ran, r.lost, r.skipped))
	return r
}

func (r *result) judgeTick(job string, starts []string, says map[string]map[string]told) {
	east, west := says[names[0]][job], says[names[1]][job]
	account := fmt.Sprintf("%s: the processes say %q, %s says %+v, %s says %+v", job, starts, names[0], east, names[1], west)
	r.doubles += max(len(starts)-1, 0)
	explained := east.explained() && west.explained()
	switch {
	case len(starts) > 0:
		r.ran++
	case !explained:
		r.missed++
	case east.outcome == string(plan.Skipped) && west.outcome == string(plan.Skipped):
		r.skipped++
		r.details = append(r.details, fmt.Sprintf("%s was skipped: %s %s, %s %s", job, names[0], east.reason, names[1], west.reason))
	default:
		r.lost++
		r.details = append(r.details, fmt.Sprintf("%s came to nothing: %s %s %s, %s %s %s", job, names[0], east.outcome, east.reason,
			names[1], west.outcome, west.reason))
	}
	if len(starts) > 1 || !explained || !agrees(names[0], east, west, starts) || !agrees(names[1], west, east, starts) {
		r.wrong = append(r.wrong, account)
	}
}

// explained reports whether a cluster has the last word and a reason for it.
func (t told) explained() bool { return t.final() && t.reason != "" }

// agrees reports whether what a cluster says about a tick is what the processes and the other cluster say.
func agrees(cluster string, says, other told, starts []string) bool {
	here := 0
	for _, at := range starts {
		if at == cluster {
			here++
		}
	}
	switch plan.Outcome(says.outcome) {
	case plan.Succeeded:
		return here == 1 && says.cluster == cluster
	case plan.Failed: // one that lost its lock may not have come to work
		return says.cluster == cluster && (here == 1 || here == 0 && len(starts) == 0 && says.reason != string(plan.TickEnded))
	case plan.Skipped:
		elsewhere := says.reason == string(plan.TickElsewhere)
		ran := other.outcome == string(plan.Succeeded) || other.outcome == string(plan.Failed)
		return here == 0 && (!elsewhere || ran && says.cluster != cluster)
	case plan.NotNoted, plan.Begun, plan.Halting, plan.PuttingBack:
	}
	return false
}
