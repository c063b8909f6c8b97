package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

func TestOnlyTheDeciderDecides(t *testing.T) {
	s := running()
	s.Self.Deciding, s.Lock.Gone = false, true
	d := plan.Decide(now, s)
	if d.Action.Kind != plan.NoAction || d.Status != s.Status || d.Reason != plan.NotDeciding {
		t.Errorf("a replica that does not decide: %+v", d)
	}
}

func TestAskingForTheKey(t *testing.T) {
	runSteps(t, map[string]step{
		"a candidate asks": {
			from: waiting,
			want: outcome{State: plan.Waiting, Action: plan.Contend, Target: "web-1", Reason: plan.Contending},
		},
		"and goes on asking": {from: asking, want: outcome{State: plan.Waiting, Reason: plan.Contending}},
		"a key that is held elsewhere is waited for": {
			from: asking, change: heldBy(plan.Away, "west", "db-1"),
			want: outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Reason: plan.HeldElsewhere},
		},
		"a key that another lock of this cluster has is waited for": {
			from: asking, change: heldBy(plan.Beside, here, "db-1"),
			want: outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Reason: plan.HeldBeside},
		},
		"a foreign holder is never taken over": {
			from:   asking,
			change: func(s *plan.Snapshot) { s.Store.Seen = plan.Seen{Presence: plan.Foreign} },
			want:   outcome{State: plan.Waiting, Reason: plan.HeldByForeign},
		},
		"a store that does not answer opens nothing": {
			from:   asking,
			change: all(heldBy(plan.Away, "west", "db-1"), func(s *plan.Snapshot) { s.Store.Unanswered = in(-time.Second) }),
			want:   outcome{State: plan.Waiting, Holder: "db-1", Fencing: 2000, Reason: plan.CannotTell},
		},
		"whoever asks is called off for a better candidate": {
			from:   asking,
			change: func(s *plan.Snapshot) { s.Candidates = append(s.Candidates, gated("web-0", 2*time.Hour)) },
			want:   outcome{State: plan.Waiting, Action: plan.CallOff, Reason: plan.Contending},
		},
		"an attempt that is being called off is waited for": {
			from: asking, change: func(s *plan.Snapshot) { s.Store.Phase = plan.GivingUp },
			want: outcome{State: plan.Waiting, Reason: plan.Contending},
		},
		"an attempt that has ended is forgotten, and the next pass comes by itself": {
			from: asking, change: func(s *plan.Snapshot) { s.Store.Phase = plan.GivenBack },
			want: outcome{State: plan.Waiting, Action: plan.Forget, Reason: plan.Contending, Revisit: time.Millisecond},
		},
		"so is one whose grant was lost before it was written down": {
			from: asking, change: lost(plan.Free),
			want: outcome{State: plan.Waiting, Action: plan.Forget, Reason: plan.Contending, Revisit: time.Millisecond},
		},
	})
}

func TestNobodyAsks(t *testing.T) {
	runSteps(t, map[string]step{
		"without a candidate the lock is idle": {
			from: func() plan.Snapshot { return base() },
			want: outcome{State: plan.Idle, Reason: plan.NoCandidate},
		},
		"an attempt without candidate is called off": {
			from: asking, change: func(s *plan.Snapshot) { s.Candidates = nil },
			want: outcome{State: plan.Idle, Action: plan.CallOff, Reason: plan.NoCandidate},
		},
		"and forgotten in the end": {
			from: asking, change: func(s *plan.Snapshot) { s.Candidates, s.Store.Phase = nil, plan.GivenBack },
			want: outcome{State: plan.Idle, Action: plan.Forget, Reason: plan.NoCandidate},
		},
		"a candidate that is being deleted is none": {
			from: waiting, change: first(func(c *plan.Candidate) { deleting(c, podGrace) }),
			want: outcome{State: plan.Idle, Reason: plan.NoCandidate},
		},
		"a leader that is not ready is none": {
			from:   func() plan.Snapshot { return base(standby("web-1", time.Hour)) },
			change: first(func(c *plan.Candidate) { c.Ready = false }),
			want:   outcome{State: plan.Idle, Reason: plan.NoCandidate},
		},
		"a candidate that backs off waits, and is looked at in time": {
			from: waiting, change: first(func(c *plan.Candidate) { c.BackOffUntil = in(20 * time.Second) }),
			want: outcome{State: plan.Waiting, Reason: plan.NoCandidate, Revisit: 20 * time.Second},
		},
		"a drained cluster takes no lock": {
			from: asking, change: func(s *plan.Snapshot) { s.Self.Contending = false },
			want: outcome{State: plan.Waiting, Action: plan.CallOff, Reason: plan.Draining},
		},
		"a refused lock is not asked for": {
			from: waiting, change: func(s *plan.Snapshot) { s.Lock.Refused = "the key is not allowed" },
			want: outcome{State: plan.Waiting, Reason: plan.Blocked},
		},
		"two clusters of one identity ask for nothing": {
			from: waiting, change: func(s *plan.Snapshot) { s.Self.IdentityConflict = true },
			want: outcome{State: plan.Waiting, Reason: plan.IdentityConflict},
		},
		"a lock that is deleted is not asked for": {
			from: asking, change: func(s *plan.Snapshot) { s.Lock.Gone = true },
			want: outcome{State: plan.Idle, Action: plan.CallOff, Reason: plan.LockDeleted},
		},
	})
}

// TestWhoGoesFirst: newest revision within one owner, then oldest; between owners oldest.
func TestWhoGoesFirst(t *testing.T) {
	newer := func(name string, age time.Duration) plan.Candidate {
		c := gated(name, age)
		c.Revision = 2
		return c
	}
	other := func(name string, age time.Duration) plan.Candidate {
		c := gated(name, age)
		c.Group, c.Revision = "batch", 9
		return c
	}
	resting := func(c plan.Candidate) plan.Candidate {
		c.BackOffUntil = in(time.Minute)
		return c
	}
	tests := map[string]struct {
		candidates []plan.Candidate
		want       string
	}{
		"the oldest of one revision":                        {[]plan.Candidate{gated("b", time.Minute), gated("a", time.Hour)}, "a"},
		"the newest revision of one owner":                  {[]plan.Candidate{gated("a", time.Hour), newer("b", time.Minute)}, "b"},
		"the oldest of several owners":                      {[]plan.Candidate{other("x", time.Minute), gated("a", time.Hour)}, "a"},
		"an older revision while the newest backs off":      {[]plan.Candidate{gated("a", time.Hour), resting(newer("b", time.Minute))}, "a"},
		"the same one each time, if all are equally old":    {[]plan.Candidate{gated("b", time.Hour), gated("a", time.Hour)}, "a"},
		"the older owner, though its newest one is younger": {[]plan.Candidate{newer("b", 2*time.Minute), gated("a", time.Hour), other("x", time.Minute)}, "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan.Decide(now, base(tc.candidates...))
			if d.Action.Kind != plan.Contend || d.Action.Target.Name != tc.want {
				t.Errorf("%s %s, want Contend %s", d.Action.Kind, d.Action.Target.Name, tc.want)
			}
		})
	}
}

func TestAGrantIsWrittenDown(t *testing.T) {
	granted := func() plan.Snapshot {
		s := asking()
		grant(&s)
		return s
	}
	runSteps(t, map[string]step{
		"a grant goes to status before anything starts": {
			from: granted,
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Acquired},
		},
		"a grant after an unclean end settles first": {
			from: granted, change: func(s *plan.Snapshot) { s.Store.NotBefore = in(takeoverDelay) },
			want: outcome{State: plan.Settling, Holder: "web-1", Fencing: token, Reason: plan.Acquired},
		},
		"a grant whose candidate is gone is written down too, to be ended in order": {
			from: granted, change: func(s *plan.Snapshot) { s.Candidates = nil },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Acquired},
		},
		"a grant that came too late for the lock is written down too": {
			from: granted, change: func(s *plan.Snapshot) { s.Lock.Gone = true },
			want: outcome{State: plan.Held, Holder: "web-1", Fencing: token, Reason: plan.Acquired},
		},
	})
}

func TestTheHighestFencingTokenIsRemembered(t *testing.T) {
	s := asking()
	s.Status.HighestSeen = 1500
	heldBy(plan.Away, "west", "db-1")(&s)
	s.Store.Seen.Highest = 2500
	if got := plan.Decide(now, s).Status.HighestSeen; got != 2500 {
		t.Errorf("highest seen %d, want the store's 2500", got)
	}
	s = asking()
	s.Status.HighestSeen = 1500
	if got := plan.Decide(now, s).Status.HighestSeen; got != 1500 {
		t.Errorf("highest seen %d, want the 1500 of before", got)
	}
	s = fencing(running, plan.LockDeleted)()
	s.Status.State, s.Store.Phase = plan.Releasing, plan.GivenBack
	if got := plan.Decide(now, s).Status; got != (plan.Status{State: plan.Idle, HighestSeen: token}) {
		t.Errorf("a closed tenure leaves %+v", got)
	}
}
