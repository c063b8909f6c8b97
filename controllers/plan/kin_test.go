package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// kin adds a pod of web-1's workload that wants another lock; web-1 itself is of revision 1.
func kin(revision int64, mods ...func(*plan.Kin)) func(*plan.Snapshot) {
	k := plan.Kin{Name: "web-k", UID: "uid-k", Group: "web", Revision: revision}
	for _, mod := range mods {
		mod(&k)
	}
	return func(s *plan.Snapshot) { s.Kin = append(s.Kin, k) }
}

func active(k *plan.Kin)   { k.Active = true }
func mayStart(k *plan.Kin) { k.Holding = true }
func settles(k *plan.Kin)  { k.Settling = true }
func stranger(k *plan.Kin) { k.Group = "shop" }

func awaited(s *plan.Snapshot) { s.Store.Awaited = true }

// TestAWorkloadThatChangedItsLock: pods of one workload which want two locks are kept apart as if they wanted one.
func TestAWorkloadThatChangedItsLock(t *testing.T) {
	const look = 250 * time.Millisecond
	due := startDeadline - time.Second
	starts := held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: due})
	runs := held(outcome{Reason: plan.Running})
	elsewhere := gated("shop-1", time.Minute)
	elsewhere.Group = "shop"
	sibling := gated("web-2", time.Minute)
	runSteps(t, map[string]step{
		"an older revision asks for nothing while a newer one works under another lock": {
			from: waiting, change: kin(2, active), want: outcome{State: plan.Waiting, Reason: plan.NoCandidate},
		},
		"it stops asking": {
			from: asking, change: kin(2, active), want: outcome{State: plan.Waiting, Action: plan.CallOff, Reason: plan.NoCandidate},
		},
		"it asks while the newer one only waits": {
			from: waiting, change: kin(2), want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending},
		},
		"a newer revision asks while an older one works under another lock": {
			from: waiting, change: kin(0, active), want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending},
		},
		"what another workload does under another lock concerns nobody": {
			from: waiting, change: kin(2, active, stranger), want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending},
		},
		"a holder that has not started yields to a newer revision that is about to start":  {from: acquired, change: kin(2, mayStart), want: ended(plan.LockChanged)},
		"it yields to one that has its lock and may not start yet":                         {from: acquired, change: kin(2, settles), want: ended(plan.LockChanged)},
		"it starts beside an older one that may not start yet":                             {from: acquired, change: kin(0, settles), want: starts},
		"it yields to one that works":                                                      {from: acquired, change: kin(2, active), want: ended(plan.LockChanged)},
		"it yields while it settles":                                                       {from: settling, change: kin(2, active), want: ended(plan.LockChanged)},
		"a leader yields as well":                                                          {from: acquiredLeader, change: kin(2, active), want: ended(plan.LockChanged)},
		"it starts while the newer one only waits":                                         {from: acquired, change: kin(2), want: starts},
		"it starts beside what another workload is about to start":                         {from: acquired, change: kin(2, mayStart, stranger), want: starts},
		"it waits for an older revision that is about to start, which will yield":          {from: acquired, change: kin(0, mayStart), want: held(outcome{Reason: plan.OthersActive, Revisit: look})},
		"it does not wait for an older one that only waits":                                {from: acquired, change: kin(0), want: starts},
		"where revisions are not numbered both sides agree which is the newer":             {from: acquired, change: kin(1, mayStart, func(k *plan.Kin) { k.UID = "uid-a" }), want: held(outcome{Reason: plan.OthersActive, Revisit: look})},
		"and the other one of the two yields":                                              {from: acquired, change: kin(1, mayStart, func(k *plan.Kin) { k.UID = "uid-z" }), want: ended(plan.LockChanged)},
		"a holder works while its workload waits for another lock and nobody for this one": {from: running, change: kin(2), want: runs},
		"it hands over where another cluster waits":                                        {from: running, change: all(kin(2), awaited), want: ended(plan.LockChanged)},
		"it hands over where another workload waits":                                       {from: running, change: all(kin(2), another(elsewhere)), want: ended(plan.LockChanged)},
		"its own replicas are no reason to":                                                {from: running, change: all(kin(2), another(sibling)), want: runs},
		"nor is an older revision, which wants the lock of before":                         {from: running, change: all(kin(0), awaited), want: runs},
		"a leader leaves that to the rollout, whose newer pods are up already":             {from: leading, change: all(kin(2), awaited), want: runs},
		"a holder that works is not ended for a newer one that works: that one sees to it": {from: running, change: kin(2, active), want: runs},
		"a pod under another lock whose revision has to stay is stopped, and waits when it is back": {
			from: acquired, change: unmarked(marked, func(c *plan.Candidate) { c.Revision = 0 }),
			want: held(outcome{Action: plan.Stop, Target: "web-0", Grace: podGrace, Reason: plan.HandOver, Revisit: look}),
		},
		"one that was given up with its node is in nobody's way": {
			from: acquired, change: unmarked(marked, func(c *plan.Candidate) { deleting(c, -time.Hour); c.RecordToken, c.Ended = 900, 900 }), want: starts,
		},
	})
}

func marked(c *plan.Candidate) { c.Marked = true }
