package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// suspended is a Job that waits, created age ago; resumed is the same one at work, with one pod.
func suspended(name string, age time.Duration) plan.Candidate {
	c := gated(name, age)
	c.Kind, c.Quiet = plan.KindJob, true
	return c
}

func resumed(c plan.Candidate) plan.Candidate {
	c.Gated, c.Quiet, c.Ready = false, false, true
	c.Record, c.RecordToken = jobOwner(c.Name), token
	c.Members = []plan.Member{member(c.Name+"-a", c.Record)}
	return c
}

func jobOwner(name string) string { return here + "/shop/Job/" + name + "/uid-" + name + "/n1" }

// member is a pod that works under a record.
func member(name, record string) plan.Member {
	m := plan.Member{Namespace: "shop", Name: name, UID: "uid-" + name, Record: record, RecordToken: token, NodeName: "node-1"}
	m.Body = onNode(gated(name, time.Hour)).Body
	return m
}

func wentOut(m plan.Member) plan.Member {
	m.Body.Terminal, m.Body.Stopped = true, true
	return m
}

func jobHolder(name, kind string) plan.Holder {
	h := holderOf(here, name)
	h.Kind, h.Owner = kind, here+"/shop/"+kind+"/"+name+"/uid-"+name+"/n1"
	return h
}

// jobAcquired: the key is the Job's and the status says so; nothing was resumed.
func jobAcquired() plan.Snapshot {
	s := acquired()
	s.Candidates = []plan.Candidate{suspended("work", time.Hour)}
	h := jobHolder("work", plan.KindJob)
	s.Status.Holder, s.Status.Token = h, h.Owner+"#1000"
	s.Store.Owner, s.Store.Token = h.Owner, s.Status.Token
	return s
}

func jobRunning() plan.Snapshot {
	s := jobAcquired()
	s.Candidates[0] = resumed(s.Candidates[0])
	s.Status.AcquiredAt, s.Status.StartedAt = in(-time.Hour), in(-time.Hour)
	return s
}

// jobStopping: the Job was suspended, its controller has said so, and its pods were looked for.
func jobStopping() plan.Snapshot {
	s := fencing(jobRunning, plan.ReleaseRequested)()
	c := &s.Candidates[0]
	c.Gated, c.Quiet, c.Listed = true, true, true
	return s
}

func TestAJob(t *testing.T) {
	holder := func(o outcome) outcome {
		o.Holder, o.Fencing = "work", token
		return o
	}
	runSteps(t, map[string]step{
		"is resumed once the status names it": {from: jobAcquired, want: holder(outcome{
			State: plan.Held, Action: plan.Start, Target: "work", Reason: plan.Acquired, Revisit: startDeadline - time.Second,
		})},
		"is not resumed while its scheduled run is not claimed": {from: jobAcquired, change: first(func(c *plan.Candidate) { c.TickPending = true }),
			want: holder(outcome{State: plan.Held, Reason: plan.Contending, Revisit: startDeadline - time.Second})},
		"is not resumed while its controller counts the pods of the run before": {from: jobAcquired, change: first(func(c *plan.Candidate) { c.Busy = true }),
			want: holder(outcome{State: plan.Held, Reason: plan.Acquired, Revisit: time.Second})},
		"has the start time of the run before taken out first": {from: jobAcquired, change: first(func(c *plan.Candidate) { c.Stale = true }),
			want: holder(outcome{State: plan.Held, Action: plan.Reset, Target: "work", Reason: plan.Acquired, Revisit: startDeadline - time.Second})},
		"that has ended gives the lock back by way of Fencing": {from: jobRunning, change: first(func(c *plan.Candidate) { c.Body.Terminal = true }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.Finished, Reason: plan.Finished})},
		"that is gone is not believed to be dead": {from: jobRunning, change: first(func(c *plan.Candidate) { c.Body.Exists = false }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.HolderGone, Reason: plan.HolderGone})},
		"that lost its key is suspended before its pods are stopped": {from: fencing(jobRunning, plan.LockLost),
			want: holder(outcome{State: plan.Fencing, Ending: plan.LockLost, Action: plan.Suspend, Target: "work", Reason: plan.LockLost})},
		"whose controller has not seen the resumption loses that word before it is suspended": {
			from: fencing(jobRunning, plan.LockLost), change: first(func(c *plan.Candidate) { c.Stale = true }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.LockLost, Action: plan.Reset, Target: "work", Reason: plan.LockLost})},
		"that is suspended has its pods stopped": {from: jobStopping,
			want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Action: plan.Stop, Target: "work", Grace: podGrace, Reason: plan.ReleaseRequested})},
		"with a pod that stops is waited for": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0].Body.Deleting, c.Members[0].Body.Deadline = true, in(20*time.Second)
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested, Revisit: time.Second})},
		"whose pods have stopped is not done before its controller has noted the suspension": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0], c.Quiet = wentOut(c.Members[0]), false
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested, Revisit: time.Second})},
		"whose pods were not looked for at the API server is not done": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0], c.Listed = wentOut(c.Members[0]), false
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested, Revisit: time.Second})},
		"whose pods have stopped is changed, so that a late resumption conflicts": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0] = wentOut(c.Members[0])
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Action: plan.Spoil, Target: "work", Reason: plan.ReleaseRequested})},
		"that can neither run nor be resumed is done": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0], c.Ended = wentOut(c.Members[0]), token
		}), want: holder(outcome{State: plan.Releasing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested})},
		"that is gone since a moment ago may yet get a pod": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members = nil
			vanish(c, 100*time.Millisecond)
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested, Revisit: 900 * time.Millisecond})},
		"that is gone for longer, with all its pods, is done": {from: jobStopping, change: first(func(c *plan.Candidate) {
			c.Members[0] = wentOut(c.Members[0])
			vanish(c, time.Minute)
		}), want: holder(outcome{State: plan.Releasing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested})},
		"that is suspended by another hand ends its tenure": {from: jobRunning, change: first(func(c *plan.Candidate) { c.Gated = true }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.HolderGone, Reason: plan.HolderGone})},
	})
}

func TestAJobThatIsResumedWithoutTheLock(t *testing.T) {
	bypassed := func() plan.Snapshot {
		s := base(suspended("work", time.Hour))
		c := &s.Candidates[0]
		*c = resumed(*c)
		c.Record, c.RecordToken = "", 0
		heldBy(plan.Away, "west", "other")(&s)
		s.Store.Phase, s.Store.Owner, s.Status.State = plan.Asking, jobOwner("work"), plan.Waiting
		s.Status.HighestSeen = 2000
		return s
	}
	other := func(o outcome) outcome {
		o.State, o.Holder, o.Fencing = plan.Waiting, "other", 2000
		return o
	}
	runSteps(t, map[string]step{
		"is suspended where somebody else has the key": {from: bypassed,
			want: other(outcome{Action: plan.Suspend, Target: "work", Reason: plan.GateBypassed})},
		"has its pods stopped next": {from: bypassed, change: first(func(c *plan.Candidate) { c.Gated, c.Quiet, c.Listed = true, true, true }),
			want: other(outcome{Action: plan.Stop, Target: "work", Grace: podGrace, Reason: plan.GateBypassed})},
		"is left alone while the store does not answer": {from: bypassed, change: func(s *plan.Snapshot) { s.Store.Unanswered = in(-time.Second) },
			want: outcome{State: plan.Waiting, Holder: "other", Fencing: 2000, Reason: plan.CannotTell}},
	})
}

// passive is an active-passive workload with one pod at work and one that waits.
func passive() plan.Snapshot {
	s := jobRunning()
	h := jobHolder("work", plan.KindDeployment)
	s.Status.Holder, s.Status.Token = h, h.Owner+"#1000"
	s.Store.Owner, s.Store.Token = h.Owner, s.Status.Token
	c := &s.Candidates[0]
	c.Kind, c.Mode, c.Quiet = plan.KindDeployment, plan.ActivePassive, true
	c.Record = h.Owner
	waits := member("b", "")
	waits.Gated, waits.RecordToken, waits.Body.Bound = true, 0, false
	c.Members = []plan.Member{member("a", h.Owner), waits}
	return s
}

func TestAnActivePassiveWorkload(t *testing.T) {
	holder := func(o outcome) outcome {
		o.Holder, o.Fencing = "work", token
		return o
	}
	stopping := func() plan.Snapshot {
		s := fencing(passive, plan.ReleaseRequested)()
		s.Candidates[0].Listed = true
		return s
	}
	runSteps(t, map[string]step{
		"has its next pod let go while it holds": {from: passive,
			want: holder(outcome{State: plan.Held, Action: plan.Start, Target: "work", Reason: plan.Acquired})},
		"has no pod let go without a recent answer of the store": {from: passive, change: func(s *plan.Snapshot) { s.Store.ValidUntil = in(fenceGrace) },
			want: holder(outcome{State: plan.Held, Reason: plan.CannotTell, Revisit: renewInterval})},
		"keeps the lock between two revisions": {from: passive, change: first(func(c *plan.Candidate) { c.Members = nil }),
			want: holder(outcome{State: plan.Held, Reason: plan.Acquired, Revisit: time.Second})},
		"gives it back once it asks for no pods": {from: passive, change: first(func(c *plan.Candidate) { c.Members, c.Done = nil, true }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.HolderGone, Reason: plan.HolderGone})},
		"has the pods that work stopped first": {from: stopping,
			want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Action: plan.Stop, Target: "work", Grace: podGrace, Reason: plan.ReleaseRequested})},
		"has those that wait changed, so that a late start conflicts": {from: stopping, change: first(func(c *plan.Candidate) { c.Members[0] = wentOut(c.Members[0]) }),
			want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Action: plan.Spoil, Target: "work", Reason: plan.ReleaseRequested})},
		"is done when all have stopped or were changed": {from: stopping, change: first(func(c *plan.Candidate) {
			c.Members[0], c.Members[1].Ended = wentOut(c.Members[0]), token
		}), want: holder(outcome{State: plan.Releasing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested})},
		"on a node that cannot be reached is not done": {from: stopping, change: first(func(c *plan.Candidate) {
			b := &c.Members[0].Body
			b.Deleting, b.Deadline, b.Node.Ready = true, in(-time.Minute), false
			c.Members[1].Ended = token
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Reason: plan.Unreachable, Revisit: 5 * time.Second})},
		"on a node that is gone is written off": {from: stopping, change: first(func(c *plan.Candidate) {
			b := &c.Members[0].Body
			b.Deleting, b.Deadline, b.Node = true, in(-time.Minute), plan.Node{Gone: true}
			c.Members[1].Ended = token
		}), want: holder(outcome{State: plan.Fencing, Ending: plan.ReleaseRequested, Action: plan.Spoil, Target: "work", Reason: plan.ReleaseRequested})},
		"that an operator confirmed dead is written off too": {from: stopping, change: all(func(s *plan.Snapshot) { s.Lock.DeadConfirmed = token }, first(func(c *plan.Candidate) {
			b := &c.Members[0].Body
			b.Deleting, b.Deadline, b.Node.Ready = true, in(-time.Minute), false
			c.Members[0].Ended, c.Members[1].Ended = token, token
		})), want: holder(outcome{State: plan.Releasing, Ending: plan.ReleaseRequested, Reason: plan.ReleaseRequested})},
	})
}
