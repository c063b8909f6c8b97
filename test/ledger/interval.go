package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Forever ends the interval of a worker that still runs.
const Forever = time.Duration(math.MaxInt64)

// Interval is the time that one worker may have worked.
type Interval struct {
	Entry               // the start
	To    time.Duration // Forever while it runs
}

// Overlap is a time in which two tenures of a key worked.
type Overlap struct{ First, Second Interval }

// Length of the overlap.
func (o Overlap) Length() time.Duration { return min(o.First.To, o.Second.To) - o.Second.At }

// Check joins all that is wrong: overlaps, and fencing tokens that do not rise. Nil means that every key had one tenure at a time.
func Check(entries []Entry) error {
	intervals := Intervals(entries)
	var errs []error
	for _, o := range Overlaps(intervals) {
		errs = append(errs, fmt.Errorf("key %s: %s and %s ran at the same time for %s",
			o.First.Key, o.First.describe(entries), o.Second.describe(entries), o.Length().Round(time.Microsecond)))
	}
	for _, pair := range Regressions(intervals) {
		errs = append(errs, fmt.Errorf("key %s: the fencing token did not rise: %s after %s",
			pair.Second.Key, pair.Second.describe(entries), pair.First.describe(entries)))
	}
	for _, i := range intervals {
		if i.Token <= 0 && !i.Unmanaged {
			errs = append(errs, fmt.Errorf("key %s: %s started without a fencing token", i.Key, i.describe(entries)))
		}
	}
	return errors.Join(errs...)
}

// Intervals matches starts with the first stop or exit of the same process after them, and sorts by key and start.
func Intervals(entries []Entry) []Interval {
	var all []Interval
	open := map[int]int{} // process -> index of its interval
	for _, e := range entries {
		i, runs := open[e.PID]
		switch {
		case e.Kind == Start:
			open[e.PID] = len(all)
			all = append(all, Interval{Entry: e, To: Forever})
		case runs:
			all[i].To = e.At
			delete(open, e.PID)
		}
	}
	slices.SortStableFunc(all, func(a, b Interval) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.At, b.At)) })
	return all
}

// Overlaps returns each interval with those of other tenures that it started in. The intervals are sorted as Intervals does.
func Overlaps(intervals []Interval) []Overlap {
	var found []Overlap
	for i, second := range intervals {
		for _, first := range intervals[:i] {
			if first.Key == second.Key && first.To > second.At && !first.sameTenure(second) {
				found = append(found, Overlap{First: first, Second: second})
			}
		}
	}
	return found
}

// Regressions returns each interval whose token is not above all of earlier tenures, after the highest of them. Unmanaged ones have none.
func Regressions(intervals []Interval) []Overlap {
	var found []Overlap
	for i, second := range intervals {
		if second.Unmanaged {
			continue
		}
		highest := -1
		for j, first := range intervals[:i] {
			if first.Key == second.Key && !first.sameTenure(second) && (highest < 0 || first.Token > intervals[highest].Token) {
				highest = j
			}
		}
		if highest >= 0 && intervals[highest].Token >= second.Token {
			found = append(found, Overlap{First: intervals[highest], Second: second})
		}
	}
	return found
}

// sameTenure tells whether two workers work under one acquisition: containers of a pod, or workers that say so, with one token.
func (i Interval) sameTenure(o Interval) bool { return i.holder() == o.holder() && i.Token == o.Token }

func (i Interval) holder() string {
	if i.Tenure != "" {
		return i.Tenure
	}
	return i.Cluster + "/" + i.PodUID
}

// describe names a worker and its time, counted from the ledger's first entry.
func (i Interval) describe(entries []Entry) string {
	from, to := i.At-entries[0].At, "still running"
	if i.To != Forever {
		to = "to " + (i.To - entries[0].At).Round(time.Microsecond).String()
	}
	return fmt.Sprintf("%s/%s (pod %s, pid %d, token %d, from %s %s)", i.Cluster, i.Pod, i.PodUID, i.PID, i.Token, from.Round(time.Microsecond), to)
}
