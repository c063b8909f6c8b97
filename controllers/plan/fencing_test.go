package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conch-dev/conch/controllers/plan"
)

func demote(s *plan.Snapshot) { s.Lock.Demote = true }

// still is a tenure whose end goes on for the reason it began.
func still(why plan.Reason, o outcome) outcome {
	o.State, o.Ending, o.Holder, o.Fencing = plan.Fencing, why, "web-1", token
	if o.Reason == "" {
		o.Reason = why
	}
	return o
}

// releasing is a tenure whose holder has stopped.
func releasing(why plan.Reason) outcome {
	return outcome{State: plan.Releasing, Ending: why, Holder: "web-1", Fencing: token, Reason: why}
}

func TestStoppingAnExclusiveHolder(t *testing.T) {
	handOver, lockLost := fencing(running, plan.HandOver), fencing(running, plan.LockLost)
	stop := func(why plan.Reason, grace time.Duration) outcome {
		return still(why, outcome{Action: plan.Stop, Target: "web-1", Grace: grace})
	}
	runSteps(t, map[string]step{
		"in good order it gets its own grace":         {from: handOver, want: stop(plan.HandOver, podGrace)},
		"without the lock it gets little":             {from: lockLost, want: stop(plan.LockLost, fenceGrace)},
		"and no more than its own":                    {from: lockLost, change: first(func(c *plan.Candidate) { c.Body.Grace = 3 * time.Second }), want: stop(plan.LockLost, 3*time.Second)},
		"but a second at least":                       {from: lockLost, change: first(func(c *plan.Candidate) { c.Body.Grace = 0 }), want: stop(plan.LockLost, time.Second)},
		"little as well once the key is lost":         {from: handOver, change: lost(plan.Away), want: stop(plan.HandOver, fenceGrace)},
		"and once the store is out of touch":          {from: handOver, change: all(unanswered, dueIn(0)), want: stop(plan.HandOver, fenceGrace)},
		"its own under Hold":                          {from: handOver, change: all(unanswered, dueIn(0), hold), want: stop(plan.HandOver, podGrace)},
		"a long goodbye is cut short by a loss (C31)": {from: lockLost, change: first(func(c *plan.Candidate) { deleting(c, 5*time.Minute) }), want: stop(plan.LockLost, fenceGrace)},
		"a stop under way is waited for": {
			from: handOver, change: first(func(c *plan.Candidate) { deleting(c, podGrace) }), want: still(plan.HandOver, outcome{Revisit: podGrace}),
		},
		"and looked at when the store gets out of touch": {
			from: handOver, change: all(unanswered, dueIn(7*time.Second), first(func(c *plan.Candidate) { deleting(c, podGrace) })),
			want: still(plan.HandOver, outcome{Revisit: 7 * time.Second}),
		},
		"once it is dead the key may go": {
			from: handOver, change: first(func(c *plan.Candidate) {
				deleting(c, 0)
				c.Body.Stopped = true
			}), want: releasing(plan.HandOver),
		},
		"deleted is not dead": {
			from: handOver, change: first(func(c *plan.Candidate) { deleting(c, -time.Minute) }), want: still(plan.HandOver, outcome{}),
		},
		"one that had not started is marked first": {
			from: fencing(acquired, plan.LockLost), want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"}),
		},
		"marked, it needs no stop": {
			from: fencing(acquired, plan.LockLost), change: first(func(c *plan.Candidate) { c.Ended = token }), want: releasing(plan.LockLost),
		},
		"an earlier mark does not count": {
			from: fencing(acquired, plan.LockLost), change: first(func(c *plan.Candidate) { c.Ended = 900 }),
			want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"}),
		},
		"a start that came before the mark is undone by a stop": {
			from: fencing(acquired, plan.LockLost), change: first(func(c *plan.Candidate) { c.Gated = false }),
			want: still(plan.LockLost, outcome{Action: plan.Stop, Target: "web-1", Grace: fenceGrace}),
		},
		"it never goes back to work under the same token": {
			from: lockLost, change: func(s *plan.Snapshot) { s.Store.ValidUntil = in(ttl) }, want: stop(plan.LockLost, fenceGrace),
		},
	})
}

func TestEndingALeader(t *testing.T) {
	unfit := fencing(leading, plan.LeaderNotReady)
	unlabelled := func(ago time.Duration) func(*plan.Snapshot) {
		return first(func(c *plan.Candidate) { c.Leading, c.Ended, c.UnlabelledSince = false, token, in(-ago) })
	}
	runSteps(t, map[string]step{
		"Restart deletes it": {from: unfit, want: still(plan.LeaderNotReady, outcome{Action: plan.Stop, Target: "web-1", Grace: podGrace})},
		"Restart deletes it though somebody took its label off": {
			from: unfit, change: first(func(c *plan.Candidate) { c.Leading = false }),
			want: still(plan.LeaderNotReady, outcome{Action: plan.Stop, Target: "web-1", Grace: podGrace}),
		},
		"Restart waits for its death": {
			from: unfit, change: all(unlabelled(time.Hour), first(func(c *plan.Candidate) { deleting(c, podGrace) })), want: still(plan.LeaderNotReady, outcome{Revisit: podGrace}),
		},
		"Demote takes the label off": {from: unfit, change: demote, want: still(plan.LeaderNotReady, outcome{Action: plan.Unlabel, Target: "web-1"})},
		"Demote marks it though somebody took its label off": {
			from: unfit, change: all(demote, first(func(c *plan.Candidate) { c.Leading = false })),
			want: still(plan.LeaderNotReady, outcome{Action: plan.Unlabel, Target: "web-1"}),
		},
		"Demote gives it time to read": {
			from: unfit, change: all(demote, unlabelled(time.Second)),
			want: still(plan.LeaderNotReady, outcome{Revisit: fenceGrace - time.Second}),
		},
		"Demote waits until it was seen without its label": {
			from: unfit, change: all(demote, unlabelled(0), first(func(c *plan.Candidate) { c.UnlabelledSince = time.Time{} })),
			want: still(plan.LeaderNotReady, outcome{}),
		},
		"Demote is done then":                         {from: unfit, change: all(demote, unlabelled(fenceGrace)), want: releasing(plan.LeaderNotReady)},
		"Demote is not done with the label on":        {from: unfit, change: all(demote, unlabelled(fenceGrace), first(func(c *plan.Candidate) { c.Leading = true })), want: still(plan.LeaderNotReady, outcome{Action: plan.Unlabel, Target: "web-1"})},
		"Demote waits for the death of one that ends": {from: unfit, change: all(demote, first(func(c *plan.Candidate) { deleting(c, podGrace) })), want: still(plan.LeaderNotReady, outcome{Revisit: podGrace})},
		"one that never led is marked": {
			from: fencing(acquiredLeader, plan.LockLost), want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"}),
		},
		"marked, it works on as one of many": {
			from: fencing(acquiredLeader, plan.LockLost), change: first(func(c *plan.Candidate) { c.Ended = token }), want: releasing(plan.LockLost),
		},
		"a start that came before the mark is undone": {
			from: fencing(acquiredLeader, plan.LockLost), change: first(func(c *plan.Candidate) { *c = working(*c) }),
			want: still(plan.LockLost, outcome{Action: plan.Stop, Target: "web-1", Grace: fenceGrace}),
		},
	})
}

// TestAHolderThatCannotBeReached: case C39.
func TestAHolderThatCannotBeReached(t *testing.T) {
	away := first(func(c *plan.Candidate) {
		deleting(c, -time.Minute)
		unready(c)
	})
	release := func(s *plan.Snapshot) { s.Lock.ReleaseLost = true }
	confirmed := func(s *plan.Snapshot) { s.Lock.DeadConfirmed = token }
	marked := first(func(c *plan.Candidate) { c.Ended = token })
	stopping := fencing(running, plan.LockLost)
	const patience = fenceGrace + takeoverDelay
	unclean := outcome{State: plan.Releasing, Ending: plan.LockLost, Unclean: true, Holder: "web-1", Fencing: token, Reason: plan.Unreachable}
	recordless := first(func(c *plan.Candidate) { c.Record, c.RecordToken = "", 0 })
	runSteps(t, map[string]step{
		"Hold waits for ever, and says so":   {from: stopping, change: away, want: still(plan.LockLost, outcome{Reason: plan.Unreachable})},
		"Hold says so for one that ends":     {from: running, change: away, want: held(outcome{Reason: plan.Unreachable})},
		"Release waits for its time":         {from: stopping, change: all(release, away, first(func(c *plan.Candidate) { deleting(c, -time.Second) })), want: still(plan.LockLost, outcome{Reason: plan.Unreachable, Revisit: patience - time.Second})},
		"Release then marks the object":      {from: stopping, change: all(release, away), want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"})},
		"Release marks one without record":   {from: stopping, change: all(release, away, recordless), want: still(plan.LockLost, outcome{Action: plan.Record, Target: "web-1"})},
		"Release gives the key back":         {from: stopping, change: all(release, away, marked), want: unclean},
		"Release ends a tenure for it":       {from: running, change: all(release, away), want: ended(plan.Unreachable)},
		"Release waits while the node is up": {from: stopping, change: all(release, first(func(c *plan.Candidate) { deleting(c, -time.Hour) })), want: still(plan.LockLost, outcome{})},
		"Release takes the label along": {
			from: fencing(leading, plan.LockLost), change: all(release, away), want: still(plan.LockLost, outcome{Action: plan.Unlabel, Target: "web-1"}),
		},
		"Release waits for a vanished holder": {
			from: stopping, change: all(release, away, first(func(c *plan.Candidate) { vanish(c, time.Second) })),
			want: still(plan.LockLost, outcome{Reason: plan.Unreachable, Revisit: podGrace + patience - time.Second}),
		},
		"Release gives up a vanished holder": {
			from: stopping, change: all(release, away, first(func(c *plan.Candidate) { vanish(c, podGrace+patience) })), want: unclean,
		},
		"Hold never gives up a vanished holder": {
			from: stopping, change: all(away, first(func(c *plan.Candidate) { vanish(c, time.Hour) })),
			want: still(plan.LockLost, outcome{Reason: plan.Unreachable}),
		},
		"confirmed dead, it is deleted first": {
			from: fencing(running, plan.HolderGone), change: all(confirmed, first(unready)),
			want: still(plan.HolderGone, outcome{Action: plan.Stop, Target: "web-1", Grace: fenceGrace}),
		},
		"then marked":      {from: stopping, change: all(confirmed, away), want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"})},
		"then it is clean": {from: stopping, change: all(confirmed, away, marked), want: releasing(plan.LockLost)},
		"confirmed dead and vanished": {
			from: stopping, change: all(confirmed, first(func(c *plan.Candidate) { vanish(c, 0) })), want: releasing(plan.LockLost),
		},
		"a confirmation needs no mark on a gated one but the usual": {
			from: fencing(acquired, plan.LockLost), change: confirmed, want: still(plan.LockLost, outcome{Action: plan.Spoil, Target: "web-1"}),
		},
		"a node that is gone frees a deleted pod once it is marked": {
			from: stopping, change: all(away, marked, first(func(c *plan.Candidate) { c.Body.Node = plan.Node{Gone: true} })), want: releasing(plan.LockLost),
		},
		"a node that is gone frees a vanished pod": {
			from: running, change: first(func(c *plan.Candidate) {
				vanish(c, 0)
				c.Body.Node = plan.Node{Gone: true}
			}), want: releasing(plan.HolderGone),
		},
	})
}

func TestGivingTheKeyBack(t *testing.T) {
	stopped := func() plan.Snapshot {
		s := fencing(running, plan.HandOver)()
		s.Status.State = plan.Releasing
		return s
	}
	phase := func(p plan.Phase) func(*plan.Snapshot) { return func(s *plan.Snapshot) { s.Store.Phase = p } }
	back := func(o outcome) outcome {
		o.State, o.Ending, o.Holder, o.Fencing = plan.Releasing, plan.HandOver, "web-1", token
		if o.Reason == "" {
			o.Reason = plan.HandOver
		}
		return o
	}
	runSteps(t, map[string]step{
		"it is given back":                        {from: stopped, want: back(outcome{Action: plan.Release})},
		"it is given back uncleanly":              {from: stopped, change: func(s *plan.Snapshot) { s.Status.Unclean = true }, want: back(outcome{Action: plan.Release, Unclean: true})},
		"a continuation is called back too":       {from: stopped, change: phase(plan.Asking), want: back(outcome{Action: plan.Release})},
		"until it is back it is waited for":       {from: stopped, change: phase(plan.GivingUp), want: back(outcome{})},
		"then the tenure is closed":               {from: stopped, change: phase(plan.GivenBack), want: outcome{State: plan.Idle, Reason: plan.Released}},
		"also if the key had been lost (C07)":     {from: stopped, change: phase(plan.Lost), want: outcome{State: plan.Idle, Reason: plan.Released}},
		"not while two clusters use one identity": {from: stopped, change: func(s *plan.Snapshot) { s.Self.IdentityConflict = true }, want: back(outcome{Reason: plan.IdentityConflict})},
		"the holder is not looked at any more":    {from: stopped, change: lost(plan.Free), want: outcome{State: plan.Idle, Reason: plan.Released}},
	})
}

// TestAStatusOfAnotherClusterIsNotOurs: the lock object may be restored in another cluster.
func TestAStatusOfAnotherClusterIsNotOurs(t *testing.T) {
	s := running()
	s.Candidates = []plan.Candidate{gated("web-1", time.Hour)}
	s.Status.Holder.Cluster, s.Store = "west", plan.Store{Answered: true}
	want := outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending}
	if diff := cmp.Diff(want, outcomeOf(plan.Decide(now, s))); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}
