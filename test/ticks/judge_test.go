package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/conch-dev/conch/test/ledger"
)

// process is one of a Job that worked from one second to another.
func process(pid int, cluster, job string, token int64, from, to int) []ledger.Entry {
	at := func(second int) time.Duration { return time.Duration(second+1) * time.Second }
	return []ledger.Entry{
		{
			Kind: ledger.Start, At: at(from), PID: pid, Key: "k", Cluster: cluster, Pod: job + "-x", PodUID: fmt.Sprint(pid),
			Tenure: fmt.Sprint(pid), Token: token,
		},
		{Kind: ledger.Exit, At: at(to), PID: pid},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	var (
		good    = told{"succeeded", "Ended", "east"}
		bad     = told{"failed", "Ended", "east"}
		lost    = told{"failed", "LostAfterStart", "east"}
		yonder  = told{"skipped", "RunsElsewhere", "east"}
		old     = told{"skipped", "Superseded", ""}
		started = told{"started", "Started", "east"}
	)
	first, second := process(1, "east", "r-1", 5, 0, 2), process(2, "west", "r-1", 6, 3, 4)
	const line = "ticks: 1 ticks, %d doubles, %d overlaps, %d missed"
	tests := map[string]struct {
		entries    []ledger.Entry
		east, west told
		want       string
		fine       bool
	}{
		"run here, skipped there":              {entries: first, east: good, west: yonder, want: fmt.Sprintf(line, 0, 0, 0), fine: true},
		"failed here, skipped there":           {entries: first, east: bad, west: yonder, want: fmt.Sprintf(line, 0, 0, 0), fine: true},
		"a run that lost its lock":             {entries: first, east: lost, west: yonder, want: fmt.Sprintf(line, 0, 0, 0), fine: true},
		"run in both clusters":                 {entries: append(second, first...), east: good, west: told{"succeeded", "Ended", "west"}, want: fmt.Sprintf(line, 1, 0, 0)},
		"run twice in one cluster":             {entries: append(process(3, "east", "r-1", 6, 3, 4), first...), east: good, west: yonder, want: fmt.Sprintf(line, 1, 0, 0)},
		"run in both clusters at once":         {entries: append(process(3, "west", "r-1", 6, 1, 3), first...), east: good, west: yonder, want: fmt.Sprintf(line, 1, 1, 0)},
		"run, and nobody has the last word":    {entries: first, east: started, west: yonder, want: fmt.Sprintf(line, 0, 0, 0)},
		"run here, and said to have run there": {entries: first, east: old, west: told{"succeeded", "Ended", "west"}, want: fmt.Sprintf(line, 0, 0, 0)},
		"run, and said to be skipped":          {entries: first, east: old, west: old, want: fmt.Sprintf(line, 0, 0, 0)},
		"skipped there for nobody's sake":      {entries: first, east: good, west: told{"skipped", "RunsElsewhere", "west"}, want: fmt.Sprintf(line, 0, 0, 0)},
		"not run, and said to have succeeded":  {east: good, west: yonder, want: fmt.Sprintf(line, 0, 0, 0)},
		"not run, and nobody says why":         {east: told{outcome: "skipped"}, west: old, want: fmt.Sprintf(line, 0, 0, 1)},
		"not run, and nobody says anything":    {want: fmt.Sprintf(line, 0, 0, 1)},
		"not run, and one does not know yet":   {east: started, west: yonder, want: fmt.Sprintf(line, 0, 0, 1)},
		"each skipped it for the other":        {east: yonder, west: told{"skipped", "RunsElsewhere", "west"}, want: fmt.Sprintf(line, 0, 0, 0)},
		"a process of no tick":                 {entries: append(process(3, "west", "r-2", 6, 3, 4), first...), east: good, west: yonder, want: fmt.Sprintf(line, 0, 0, 0)},
		"a fencing token that fell":            {entries: append(process(3, "west", "r-1", 4, 3, 4), first...), east: good, west: yonder, want: fmt.Sprintf(line, 1, 0, 0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := judge([]string{"r-1"}, tc.entries, map[string]map[string]told{"east": {"r-1": tc.east}, "west": {"r-1": tc.west}})

			if r.String() != tc.want {
				t.Errorf("got %q, want %q", r, tc.want)
			}
			if err := r.verdict(); (err == nil) != tc.fine {
				t.Errorf("the verdict is %v", err)
			}
		})
	}
}

func TestATickThatCameToNothingOrWasSkippedWithReasonsIsAccountedFor(t *testing.T) {
	t.Parallel()
	says := map[string]map[string]told{
		"east": {"r-1": {"succeeded", "Ended", "east"}, "r-2": {"failed", "LostAfterStart", "east"}, "r-3": {"skipped", "Superseded", ""}},
		"west": {"r-1": {"skipped", "RunsElsewhere", "east"}, "r-2": {"skipped", "RunsElsewhere", "east"}, "r-3": {"skipped", "TooOld", ""}},
	}

	r := judge([]string{"r-1", "r-2", "r-3"}, process(1, "east", "r-1", 5, 0, 2), says)

	if r.ran != 1 || r.lost != 1 || r.skipped != 1 || r.missed != 0 || len(r.wrong) > 0 {
		t.Errorf("got %+v", r)
	}
	if r.verdict() == nil {
		t.Error("one of three ticks ran, which shows nothing, and the verdict is fine")
	}
}

func TestASeedPlansTheSameRuns(t *testing.T) {
	t.Parallel()
	o := usual()
	o.seed = 7
	other := o
	other.seed = 8
	same, skews := true, map[time.Duration]bool{}
	for minute := range 50 {
		a, b := o.planOf(minute), o.planOf(minute)
		if a != b {
			t.Errorf("tick %d: %+v and %+v from one seed", minute, a, b)
		}
		same = same && a == other.planOf(minute)
		for _, skew := range a.skew {
			skews[skew] = true
			if skew < 0 || skew > o.skew {
				t.Errorf("tick %d: a skew of %s", minute, skew)
			}
		}
	}
	if same || len(skews) < 50 {
		t.Errorf("another seed plans the same: %t; %d skews", same, len(skews))
	}
}
