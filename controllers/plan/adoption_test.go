package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// orphaned is a holder that works while the status names nobody.
func orphaned() plan.Snapshot {
	return base(working(gated("web-1", time.Hour)))
}

// TestWhatACrashLeaves covers a decider that is gone between any effect and its status. C91.
func TestWhatACrashLeaves(t *testing.T) {
	runSteps(t, map[string]step{
		"an attempt of this lock that nobody wrote down never started, and is cleared away": {
			from: asking, change: heldBy(plan.Here, here, "web-1"),
			want: outcome{State: plan.Waiting, Action: plan.Sweep, Reason: plan.Contending},
		},
		"so it is, however old it is": {
			from:   asking,
			change: all(heldBy(plan.Here, here, "web-1"), func(s *plan.Snapshot) { s.Status.HighestSeen = 5000 }),
			want:   outcome{State: plan.Waiting, Action: plan.Sweep, Reason: plan.Contending},
		},
		"what a candidate that is no more left behind is cleared away": {
			from: asking, change: heldBy(plan.Remains, here, "web-9"),
			want: outcome{State: plan.Waiting, Action: plan.Sweep, Reason: plan.Contending},
		},
		"nothing is cleared away while two clusters use one identity": {
			from:   asking,
			change: all(heldBy(plan.Remains, here, "web-9"), func(s *plan.Snapshot) { s.Self.IdentityConflict = true }),
			want:   outcome{State: plan.Waiting, Action: plan.CallOff, Reason: plan.IdentityConflict},
		},
		"a status without a start is followed by the start": {
			from: acquired,
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: startDeadline - time.Second},
		},
		"an adopted grant starts nobody before the store confirmed it": {
			from: acquired, change: func(s *plan.Snapshot) { s.Store.ValidUntil, s.Store.KeptSince = time.Time{}, now },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.CannotTell, Revisit: renewInterval},
		},
		"a start without its status is written down": {
			from: running, change: func(s *plan.Snapshot) { s.Status.StartedAt = time.Time{} },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Started},
		},
		"a continuation that was not written down is asked for again": {
			from:   running,
			change: all(lost(plan.Here), heldBy(plan.Here, here, "web-1")),
			want:   outcome{State: plan.Held, Holder: "web-1", Fencing: token, Action: plan.Continue, Target: "web-1", Reason: plan.TenureBroken, Revisit: fenceGrace},
		},
		"an earlier acquisition of the same owner is no continuation": {
			from:   running,
			change: all(lost(plan.Here), heldBy(plan.Here, here, "web-1"), func(s *plan.Snapshot) { s.Store.Seen.FencingToken = 900 }),
			want:   outcome{State: plan.Fencing, Ending: plan.LockLost, Holder: "web-1", Fencing: token, Reason: plan.LockLost},
		},
		"a stop that was asked for is not asked for again": {
			from: fencing(running, plan.LockLost), change: first(func(c *plan.Candidate) { deleting(c, fenceGrace) }),
			want: outcome{State: plan.Fencing, Ending: plan.LockLost, Holder: "web-1", Fencing: token, Reason: plan.LockLost, Revisit: fenceGrace},
		},
		"a release that was not written down is written down": {
			from:   fencing(running, plan.HandOver),
			change: func(s *plan.Snapshot) { s.Status.State, s.Store.Phase = plan.Releasing, plan.Lost },
			want:   outcome{State: plan.Idle, Reason: plan.Released},
		},
	})
}

// TestARecordNamesTheHolder: the lock object, or its status, was lost, or conch was reinstalled.
func TestARecordNamesTheHolder(t *testing.T) {
	runSteps(t, map[string]step{
		"a working candidate is adopted by its own record": {
			from: orphaned,
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Adopted},
		},
		"so is a leader": {
			from: func() plan.Snapshot { return base(standby("web-2", time.Hour), working(standby("web-1", time.Hour))) },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Adopted},
		},
		"without the lock's object it is ended in order": {
			from: orphaned, change: func(s *plan.Snapshot) { s.Lock.Gone = true },
			want: outcome{State: plan.Fencing, Ending: plan.LockDeleted, Holder: "web-1", Fencing: token, Reason: plan.Adopted},
		},
		"a record that somebody came after is ended in order": {
			from: orphaned, change: func(s *plan.Snapshot) { s.Status.HighestSeen = token + 1 },
			want: outcome{State: plan.Fencing, Ending: plan.LockLost, Holder: "web-1", Fencing: token, Reason: plan.Adopted},
		},
		"a record is adopted before a drain is heeded": {
			from: orphaned, change: func(s *plan.Snapshot) { s.Self.Contending = false },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Adopted},
		},
		"nothing is adopted while two clusters use one identity": {
			from: orphaned, change: func(s *plan.Snapshot) { s.Self.IdentityConflict = true },
			want: outcome{State: plan.Idle, Reason: plan.IdentityConflict},
		},
		"the newest of two records counts": {
			from: orphaned,
			change: func(s *plan.Snapshot) {
				c := working(gated("web-2", time.Minute))
				c.RecordToken = token + 5
				s.Candidates = append(s.Candidates, c)
			},
			want: outcome{State: plan.Held, Holder: "web-2", Fencing: token + 5, Reason: plan.Adopted},
		},
		"a record of a candidate that is dead is none": {
			from: orphaned, change: first(func(c *plan.Candidate) { c.Body.Terminal, c.Body.Stopped = true, true }),
			want: outcome{State: plan.Idle, Reason: plan.NoCandidate},
		},
		"a record of a tenure that was written off is none": {
			from: orphaned, change: first(func(c *plan.Candidate) {
				deleting(c, -time.Hour)
				unready(c)
				c.Ended = token
			}),
			want: outcome{State: plan.Idle, Reason: plan.NoCandidate},
		},
	})
}

func TestTheRecordOfAnOrphanIsExported(t *testing.T) {
	st, found := plan.Recorded(now, orphaned())
	if !found || st.FencingToken != token || st.Holder.Owner != ownerOf(here, "web-1") || st.Token != ownerOf(here, "web-1")+"#1000" {
		t.Errorf("found %v: %+v", found, st)
	}
	if _, found := plan.Recorded(now, waiting()); found {
		t.Error("a gated candidate bears no record")
	}
}

// TestWhoeverWorksWithoutTheLock covers pods that got past the gate, or took the label. C119, C147.
func TestWhoeverWorksWithoutTheLock(t *testing.T) {
	loose := func() plan.Snapshot {
		c := onNode(gated("web-1", time.Hour))
		c.Gated, c.Ready = false, true
		return base(c, gated("web-2", 2*time.Hour))
	}
	asked := func() plan.Snapshot {
		s := loose()
		s.Store.Phase, s.Store.Owner = plan.Asking, ownerOf(here, "web-1")
		return s
	}
	got := func() plan.Snapshot {
		s := loose()
		a := acquired()
		s.Store, s.Status = a.Store, a.Status
		return s
	}
	beside := func() plan.Snapshot {
		s := running()
		c := onNode(gated("web-2", time.Minute))
		c.Gated = false
		s.Candidates = append(s.Candidates, c)
		return s
	}
	second := func(change func(*plan.Candidate)) func(*plan.Snapshot) {
		return func(s *plan.Snapshot) { change(&s.Candidates[1]) }
	}
	held := outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.OthersActive}
	runSteps(t, map[string]step{
		"it asks before everybody else, so that nobody starts beside it": {
			from: loose,
			want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending},
		},
		"it is stopped if the store names another": {
			from: asked, change: heldBy(plan.Away, "west", "db-1"),
			want: outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Action: plan.Stop, Target: "web-1", Grace: podGrace, Reason: plan.GateBypassed},
		},
		"it is not stopped while the store does not answer": {
			from: asked, change: all(heldBy(plan.Away, "west", "db-1"), func(s *plan.Snapshot) { s.Store.Unanswered = in(-time.Second) }),
			want: outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Reason: plan.CannotTell},
		},
		"it is not stopped if its template is not marked": {
			from: asked, change: all(heldBy(plan.Away, "west", "db-1"), first(func(c *plan.Candidate) { c.Marked = false })),
			want: outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Reason: plan.OthersActive},
		},
		"with the key it is ended, so that a gated one takes over": {
			from: got,
			want: outcome{State: plan.Fencing, Ending: plan.GateBypassed, Holder: "web-1", Fencing: token, Reason: plan.GateBypassed},
		},
		"it is ended with back-off": {
			from: got, change: first(func(c *plan.Candidate) { c.BackOffUntil = in(time.Minute) }),
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.GateBypassed, Revisit: time.Minute},
		},
		"one that an operator let pass is adopted": {
			from: got, change: first(func(c *plan.Candidate) { c.Overridden = true }),
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Started},
		},
		"one that ran before its workload was marked is adopted": {
			from: got, change: first(func(c *plan.Candidate) { c.Marked = false }),
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Started, Revisit: 10 * time.Second},
		},
		"beside a holder it is stopped": {
			from: beside,
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Action: plan.Stop, Target: "web-2", Grace: podGrace, Reason: plan.GateBypassed},
		},
		"beside a holder it is not stopped while the store does not answer": {
			from: beside, change: func(s *plan.Snapshot) { s.Store.Unanswered = now },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.OthersActive, Revisit: ttl - time.Second - fenceGrace - margin},
		},
		"beside a holder it is stopped with back-off": {
			from: beside, change: second(func(c *plan.Candidate) { c.BackOffUntil = in(time.Minute) }),
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.OthersActive, Revisit: time.Minute},
		},
		"its own record may know better": {
			from: beside, change: second(func(c *plan.Candidate) { c.Record, c.RecordToken = ownerOf(here, "web-2"), token+1 }),
			want: held,
		},
		"once it is stopping it is left to it": {
			from: beside, change: second(func(c *plan.Candidate) { deleting(c, podGrace) }),
			want: held,
		},
		"a second leader loses its label under Demote": {
			from:   leading,
			change: all(second(func(c *plan.Candidate) { c.Leading = true }), func(s *plan.Snapshot) { s.Lock.Demote = true }),
			want:   outcome{State: plan.Held, Holder: "web-1", Fencing: token, Action: plan.Unlabel, Target: "web-2", Reason: plan.OthersActive},
		},
		"a second leader is stopped under Restart": {
			from: leading, change: second(func(c *plan.Candidate) { c.Leading = true }),
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Action: plan.Stop, Target: "web-2", Grace: podGrace, Reason: plan.GateBypassed},
		},
		"nobody starts beside it": {
			from: acquired,
			change: func(s *plan.Snapshot) {
				c := onNode(gated("web-2", time.Minute))
				c.Gated, c.Marked = false, false
				s.Candidates = append(s.Candidates, c)
			},
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.OthersActive, Revisit: startDeadline - time.Second},
		},
	})
}
