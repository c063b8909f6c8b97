package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conch-dev/conch/controllers/plan"
)

const (
	fenceGrace    = 10 * time.Second
	margin        = 5 * time.Second
	renewInterval = 10 * time.Second
	takeoverDelay = 25 * time.Second
	startDeadline = 5 * time.Minute
	podGrace      = 30 * time.Second
	ttl           = time.Minute

	here  = "east"
	token = int64(1000)
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// in is a moment counted from now; negative ones have passed.
func in(d time.Duration) time.Time { return now.Add(d) }

// outcome is what a table expects of a decision; the fields left out are zero.
type outcome struct {
	State   plan.State
	Ending  plan.Reason
	Unclean bool
	Fencing int64
	Holder  string
	Action  plan.ActionKind
	Target  string
	Grace   time.Duration
	Reason  plan.Reason
	Revisit time.Duration
}

func outcomeOf(d plan.Decision) outcome {
	return outcome{
		State: d.Status.State, Ending: d.Status.Ending, Unclean: d.Status.Unclean || d.Action.Unclean,
		Fencing: d.Status.FencingToken, Holder: d.Status.Holder.Name,
		Action: d.Action.Kind, Target: d.Action.Target.Name, Grace: d.Action.Grace,
		Reason: d.Reason, Revisit: d.Revisit,
	}
}

// step is one row of a table: a snapshot, changed, and what follows from it.
type step struct {
	from   func() plan.Snapshot
	change func(s *plan.Snapshot)
	want   outcome
}

func runSteps(t *testing.T, tests map[string]step) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tc.from()
			if tc.change != nil {
				tc.change(&s)
			}
			if diff := cmp.Diff(tc.want, outcomeOf(plan.Decide(now, s))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func ownerOf(cluster, name string) string {
	return cluster + "/shop/Pod/" + name + "/uid-" + name + "/n1"
}

func holderOf(cluster, name string) plan.Holder {
	return plan.Holder{
		Cluster: cluster, Namespace: "shop", Kind: "Pod", Name: name, UID: "uid-" + name,
		Owner: ownerOf(cluster, name), Grace: podGrace,
	}
}

// gated is an exclusive pod that waits, created age ago.
func gated(name string, age time.Duration) plan.Candidate {
	return plan.Candidate{
		Kind: "Pod", Namespace: "shop", Name: name, UID: "uid-" + name, Mode: plan.Exclusive,
		Created: in(-age), ReadySince: in(-age), Group: "web", Revision: 1, Gated: true, Marked: true,
		Body: plan.Body{Exists: true, Known: true, Grace: podGrace},
	}
}

// standby is a leader's pod that is ready and does not lead.
func standby(name string, age time.Duration) plan.Candidate {
	c := gated(name, age)
	c.Mode, c.Gated, c.Ready = plan.Leader, false, true
	return onNode(c)
}

func onNode(c plan.Candidate) plan.Candidate {
	c.NodeName, c.BootID = "node-1", "boot-1"
	c.Body.Bound = true
	c.Body.Node = plan.Node{Ready: true, ReadySince: in(-24 * time.Hour), HeardFirst: in(-24 * time.Hour), HeardAt: now}
	return c
}

// working is a candidate that conch started under the present tenure.
func working(c plan.Candidate) plan.Candidate {
	c = onNode(c)
	c.Gated, c.Leading, c.Ready = false, c.Mode == plan.Leader, true
	c.Record, c.RecordToken = ownerOf(here, c.Name), token
	c.RecordedToken = c.Record + "#1000"
	return c
}

func lockRules() plan.Lock {
	return plan.Lock{
		Shared: true, FenceGrace: fenceGrace, Margin: margin, RenewInterval: renewInterval,
		TakeoverDelay: takeoverDelay, StartDeadline: startDeadline,
	}
}

func base(candidates ...plan.Candidate) plan.Snapshot {
	return plan.Snapshot{
		Lock: lockRules(), Candidates: candidates,
		Status: plan.Status{State: plan.Idle},
		Store:  plan.Store{Answered: true, KeptSince: in(-time.Hour)},
		Self:   plan.Self{Cluster: here, Deciding: true, Contending: true},
	}
}

// waiting: web-1 is gated, and nobody asked for the key yet.
func waiting() plan.Snapshot { return base(gated("web-1", time.Hour)) }

// asking: web-1 contends.
func asking() plan.Snapshot {
	s := waiting()
	s.Store.Phase, s.Store.Owner, s.Store.Asker = plan.Asking, ownerOf(here, "web-1"), holderOf(here, "web-1")
	s.Status.State = plan.Waiting
	return s
}

func grant(s *plan.Snapshot) {
	s.Store.Phase, s.Store.Owner = plan.Granted, ownerOf(here, "web-1")
	s.Store.Token, s.Store.FencingToken = ownerOf(here, "web-1")+"#1000", token
	s.Store.ValidUntil, s.Store.GrantedAt = in(ttl-time.Second), in(-time.Second)
}

// acquired: the key is web-1's and the status says so; nothing was started.
func acquired() plan.Snapshot {
	s := waiting()
	grant(&s)
	s.Status = plan.Status{
		State: plan.Held, Holder: holderOf(here, "web-1"), Token: s.Store.Token,
		FencingToken: token, HighestSeen: token, AcquiredAt: in(-time.Second),
	}
	return s
}

// running: web-1 has had the lock for an hour and works.
func running() plan.Snapshot {
	s := acquired()
	s.Candidates[0] = working(s.Candidates[0])
	s.Status.AcquiredAt, s.Status.StartedAt = in(-time.Hour), in(-time.Hour)
	s.Status.Holder.Node, s.Status.Holder.BootID = "node-1", "boot-1"
	return s
}

// leading: web-1 leads, web-2 is ready and younger.
func leading() plan.Snapshot {
	s := running()
	s.Candidates = []plan.Candidate{working(standby("web-1", time.Hour)), standby("web-2", time.Minute)}
	return s
}

// fencing is running, with the status of a tenure that is being ended.
func fencing(from func() plan.Snapshot, why plan.Reason) func() plan.Snapshot {
	return func() plan.Snapshot {
		s := from()
		s.Status.State, s.Status.Ending = plan.Fencing, why
		return s
	}
}

func lost(p plan.Presence) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) {
		s.Store.Phase, s.Store.Seen.Presence = plan.Lost, p
	}
}

func heldBy(p plan.Presence, cluster, name string) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) {
		s.Store.Seen = plan.Seen{
			Presence: p, Holder: holderOf(cluster, name), Token: ownerOf(cluster, name) + "#2000", FencingToken: 2000, Highest: 2000,
		}
	}
}

func deleting(c *plan.Candidate, deadline time.Duration) {
	c.Body.Deleting, c.Body.Deadline = true, in(deadline)
}

// vanish makes the holder's object disappear, age ago.
func vanish(c *plan.Candidate, age time.Duration) {
	c.Body.Exists, c.Body.VanishedAt = false, in(-age)
}

func unready(c *plan.Candidate) { c.Body.Node.Ready, c.Body.Node.ReadySince = false, time.Time{} }

// all applies changes in turn.
func all(changes ...func(*plan.Snapshot)) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) {
		for _, change := range changes {
			change(s)
		}
	}
}

func first(change func(*plan.Candidate)) func(*plan.Snapshot) {
	return func(s *plan.Snapshot) { change(&s.Candidates[0]) }
}
