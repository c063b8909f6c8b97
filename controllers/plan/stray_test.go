package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// unmarked is a pod of the holder's workload from before it was annotated.
func unmarked(mods ...func(*plan.Candidate)) func(*plan.Snapshot) {
	c := onNode(gated("web-0", 2*time.Hour))
	c.Gated, c.Marked, c.Stray, c.Ready = false, false, true, true
	for _, mod := range mods {
		mod(&c)
	}
	return another(c)
}

func replaceable(c *plan.Candidate) { c.Replaceable = true }

// TestAnUnmarkedPodOfTheHoldersWorkload: nothing starts beside it, and its revision hands over.
func TestAnUnmarkedPodOfTheHoldersWorkload(t *testing.T) {
	const look = 250 * time.Millisecond
	waits := held(outcome{Reason: plan.OthersActive, Revisit: look})
	runSteps(t, map[string]step{
		"its revision is taken out of service": {
			from: acquired, change: unmarked(replaceable),
			want: held(outcome{Action: plan.Retire, Target: "web-0", Reason: plan.HandOver, Revisit: look}),
		},
		"it is waited for while it stops": {
			from: acquired, change: unmarked(replaceable, func(c *plan.Candidate) { deleting(c, time.Minute) }), want: waits,
		},
		"one that cannot be replaced is left to the user":        {from: acquired, change: unmarked(), want: waits},
		"once it has stopped the holder starts":                  {from: acquired, change: unmarked(stoppedBody), want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: startDeadline - time.Second})},
		"it runs on while the lock is not yet good for starting": {from: acquired, change: all(unmarked(replaceable), dueIn(0)), want: held(outcome{Reason: plan.CannotTell, Revisit: renewInterval})},
	})
}

func stoppedBody(c *plan.Candidate) {
	deleting(c, time.Minute)
	c.Body.Stopped = true
}

// TestHandingOverBetweenRevisionsAndModes: what a newer version of a workload asks of the older.
func TestHandingOverBetweenRevisionsAndModes(t *testing.T) {
	newer := gated("web-2", time.Minute)
	newer.Revision = 2
	gaveUp := newer
	gaveUp.GaveUp = true
	older := newer
	older.Revision = 0
	runSteps(t, map[string]step{
		"a newer exclusive revision asks a leader of the older to hand over": {
			from: func() plan.Snapshot {
				s := running()
				s.Candidates = []plan.Candidate{working(standby("web-1", time.Hour))}
				return s
			},
			change: another(newer), want: ended(plan.HandOver),
		},
		"a revision that could not start does not disturb the older one": {
			from: running, change: another(gaveUp), want: held(outcome{Reason: plan.Running}),
		},
		"an older revision asks for nothing": {from: running, change: another(older), want: held(outcome{Reason: plan.Running})},
		"a revision that gave up contends where nobody works": {
			from:   func() plan.Snapshot { return base(gaveUp) },
			change: nil, want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-2", Reason: plan.Contending},
		},
	})
}
