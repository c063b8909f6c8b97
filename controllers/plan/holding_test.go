package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// held is what most rows expect: the tenure goes on.
func held(o outcome) outcome {
	o.State, o.Holder = plan.Held, "web-1"
	if o.Fencing == 0 {
		o.Fencing = token
	}
	return o
}

// ended is a tenure that is ended from here on.
func ended(why plan.Reason) outcome {
	return outcome{State: plan.Fencing, Ending: why, Holder: "web-1", Fencing: token, Reason: why}
}

func settling() plan.Snapshot {
	s := acquired()
	s.Status.State, s.Status.NotBefore = plan.Settling, in(takeoverDelay)
	return s
}

func acquiredLeader() plan.Snapshot {
	s := acquired()
	s.Candidates = []plan.Candidate{standby("web-1", time.Hour), standby("web-2", time.Minute)}
	return s
}

// dueIn sets the store's last answer so that the deadline for fencing comes after d.
func dueIn(d time.Duration) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) { s.Store.ValidUntil = in(d + fenceGrace + margin) }
}

func unanswered(s *plan.Snapshot) { s.Store.Unanswered = in(-20 * time.Second) }

func TestStartingTheHolder(t *testing.T) {
	due := startDeadline - time.Second
	runSteps(t, map[string]step{
		"an exclusive holder is started": {
			from: acquired, want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: due}),
		},
		"so is a leader": {
			from: acquiredLeader, want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired}),
		},
		"it starts only under the grant that the status names": {
			from: acquired, change: func(s *plan.Snapshot) { s.Store.Token = "another" },
			want: held(outcome{Reason: plan.CannotTell, Revisit: renewInterval}),
		},
		"it does not start on a grant that is about to end": {
			from: acquired, change: dueIn(0),
			want: held(outcome{Reason: plan.CannotTell, Revisit: renewInterval}),
		},
		"it starts on the last moment before": {
			from: acquired, change: dueIn(time.Nanosecond),
			want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: due}),
		},
		"it does not start while another one still stops": {
			from: acquired, change: func(s *plan.Snapshot) {
				c := working(gated("web-2", time.Minute))
				deleting(&c, podGrace)
				s.Candidates = append(s.Candidates, c)
			},
			want: held(outcome{Reason: plan.OthersActive, Revisit: due}),
		},
		"one that was written off is in nobody's way": {
			from: acquired, change: func(s *plan.Snapshot) {
				c := working(gated("web-2", time.Minute))
				deleting(&c, -time.Hour)
				c.RecordToken, c.Ended = 900, 900
				s.Candidates = append(s.Candidates, c)
			},
			want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired, Revisit: due}),
		},
		"nothing starts while two clusters use one identity": {
			from: acquired, change: func(s *plan.Snapshot) { s.Self.IdentityConflict = true },
			want: held(outcome{Reason: plan.IdentityConflict, Revisit: due}),
		},
		"a start that is no longer allowed gives the key back": {
			from: acquired, change: func(s *plan.Snapshot) { s.Lock.Refused = "the key is not allowed" },
			want: ended(plan.Blocked),
		},
		"a holder that works is not ended for it": {
			from: running, change: func(s *plan.Snapshot) { s.Lock.Refused = "the key is not allowed" },
			want: held(outcome{Reason: plan.Running}),
		},
		"a candidate that leaves before its start gives the key back": {
			from: acquired, change: first(func(c *plan.Candidate) { deleting(c, podGrace) }),
			want: ended(plan.HolderGone),
		},
		"so does a leader that leaves before it led": {
			from: acquiredLeader, change: first(func(c *plan.Candidate) { deleting(c, podGrace) }),
			want: ended(plan.HolderGone),
		},
		"a candidate that was deleted before its start needs no stop": {
			from: acquired, change: first(func(c *plan.Candidate) {
				vanish(c, 0)
				c.Body.Final = true
			}),
			want: outcome{State: plan.Releasing, Ending: plan.HolderGone, Holder: "web-1", Fencing: token, Reason: plan.HolderGone},
		},
		"the key gone before the start ends the tenure": {from: acquired, change: lost(plan.Free), want: ended(plan.LockLost)},
		"a label that somebody took off is put back": {
			from: leading, change: first(func(c *plan.Candidate) { c.Leading = false }),
			want: held(outcome{Action: plan.Start, Target: "web-1", Reason: plan.Acquired}),
		},
	})
}

func TestSettling(t *testing.T) {
	over := func(s *plan.Snapshot) { s.Status.NotBefore = now }
	settle := func(o outcome) outcome {
		o.State, o.Holder, o.Fencing = plan.Settling, "web-1", token
		return o
	}
	runSteps(t, map[string]step{
		"nothing starts while the holder before may run": {
			from: settling, want: settle(outcome{Reason: plan.Contending, Revisit: takeoverDelay}),
		},
		"after that the lock is held": {from: settling, change: over, want: held(outcome{Reason: plan.Settled, Revisit: startDeadline})},
		"but not on a stale grant": {
			from: settling, change: all(over, dueIn(0)),
			want: settle(outcome{Reason: plan.CannotTell, Revisit: renewInterval}),
		},
		"a held lock keeps the wait as well": {
			from: acquired, change: func(s *plan.Snapshot) { s.Status.NotBefore = in(takeoverDelay) },
			want: held(outcome{Reason: plan.Contending, Revisit: takeoverDelay}),
		},
		"losing the key ends it": {from: settling, change: lost(plan.Away), want: ended(plan.LockLost)},
		"deleting the lock ends it": {
			from: settling, change: func(s *plan.Snapshot) { s.Lock.Gone = true }, want: ended(plan.LockDeleted),
		},
	})
}

func TestKeepingATenure(t *testing.T) {
	runSteps(t, map[string]step{
		"a holder that works is left alone": {from: running, want: held(outcome{Reason: plan.Running})},
		"so is a leader":                    {from: leading, want: held(outcome{Reason: plan.Running})},
		"an old record is refreshed": {
			from: running, change: first(func(c *plan.Candidate) { c.RecordToken = 900 }),
			want: held(outcome{Action: plan.Record, Target: "web-1", Reason: plan.Running}),
		},
		"a record of another identity is refreshed": {
			from: running, change: first(func(c *plan.Candidate) { c.Record = "somebody" }),
			want: held(outcome{Action: plan.Record, Target: "web-1", Reason: plan.Running}),
		},
		"a key that vanished is asked for again": {
			from: running, change: lost(plan.Free),
			want: held(outcome{Action: plan.Continue, Target: "web-1", Reason: plan.TenureBroken, Revisit: fenceGrace}),
		},
		"also for a holder that is leaving": {
			from: running, change: all(lost(plan.Free), first(func(c *plan.Candidate) { deleting(c, podGrace) })),
			want: held(outcome{Action: plan.Continue, Target: "web-1", Reason: plan.TenureBroken, Revisit: fenceGrace}),
		},
		"but not while two clusters use one identity": {
			from: running, change: all(lost(plan.Free), func(s *plan.Snapshot) { s.Self.IdentityConflict = true }),
			want: held(outcome{Reason: plan.IdentityConflict}),
		},
		"while it is asked for the holder works on": {
			from: running, change: func(s *plan.Snapshot) {
				s.Store = plan.Store{Phase: plan.Asking, Continuing: true, KeptSince: now, Answered: true}
			},
			want: held(outcome{Reason: plan.Running, Revisit: fenceGrace}),
		},
		"the new fencing token goes to status": {
			from: running, change: func(s *plan.Snapshot) { s.Store.FencingToken, s.Store.Token = 1001, "t1001" },
			want: held(outcome{Fencing: 1001, Reason: plan.TenureBroken}),
		},
		"and then to the holder": {
			from: running, change: func(s *plan.Snapshot) {
				s.Store.FencingToken, s.Status.FencingToken = 1001, 1001
			},
			want: held(outcome{Fencing: 1001, Action: plan.Record, Target: "web-1", Reason: plan.Running}),
		},
		"a holder that is being deleted keeps the lock": {
			from: running, change: first(func(c *plan.Candidate) { deleting(c, podGrace) }), want: held(outcome{Reason: plan.Running, Revisit: podGrace}),
		},
		"so does a leader that is being deleted, though another is ready": {
			from: leading, change: first(func(c *plan.Candidate) {
				deleting(c, podGrace)
				c.Ready, c.ReadySince = false, in(-time.Minute)
			}),
			want: held(outcome{Reason: plan.Running, Revisit: podGrace}),
		},
		"a drain leaves what nobody waits for": {
			from: running, change: func(s *plan.Snapshot) { s.Self.Contending = false }, want: held(outcome{Reason: plan.Running}),
		},
		"an operator's release of an earlier token is none": {
			from: running, change: func(s *plan.Snapshot) { s.Lock.ReleaseAsked = 999 }, want: held(outcome{Reason: plan.Running}),
		},
		"an operator's word on an earlier holder is none": {
			from: running, change: func(s *plan.Snapshot) { s.Lock.DeadConfirmed = 999 }, want: held(outcome{Reason: plan.Running}),
		},
		"a holder whose node rebooted goes on": {
			from: running, change: first(func(c *plan.Candidate) {
				c.Body.Node.Rebooted, c.Body.Node.ReadySince, c.BootID = true, now, "boot-2"
			}),
			want: held(outcome{Reason: plan.Running}),
		},
		"the end of the longest hold is looked at in time": {
			from: running, change: func(s *plan.Snapshot) { s.Lock.MaxHold = 2 * time.Hour }, want: held(outcome{Reason: plan.Running, Revisit: time.Hour}),
		},
		"a holder that lost its mark is looked at now and then": {
			from: running, change: first(func(c *plan.Candidate) { c.Marked = false }), want: held(outcome{Reason: plan.Running, Revisit: 10 * time.Second}),
		},
	})
}

func TestWhereTheHolderRunsIsNoted(t *testing.T) {
	s := running()
	s.Status.Holder.Node, s.Status.Holder.BootID = "", ""
	if h := plan.Decide(now, s).Status.Holder; h.Node != "node-1" || h.BootID != "boot-1" {
		t.Errorf("node %q boot %q", h.Node, h.BootID)
	}
	s.Candidates[0].BootID, s.Status.Holder.BootID = "", "boot-0"
	if h := plan.Decide(now, s).Status.Holder; h.BootID != "boot-0" {
		t.Errorf("a boot that cannot be read now was forgotten: %q", h.BootID)
	}
}
