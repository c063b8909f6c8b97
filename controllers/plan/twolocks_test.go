package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// twoLocks is a workload that changed its lock: pod 0 is of the older revision and wants lock 0, pod 1 of the
// newer one and wants lock 1. The locks are decided for by passes that interleave in every way, and a decider
// that crashes leaves an effect under way. All of it is comparable, so that every state is visited once.
type twoLocks struct {
	pods  [2]kinPod
	locks [2]kinLock
	// seen are the pods that a pass has read so far, due is what it decided, and late what a crashed one did.
	seen    [2][2]kinPod
	looked  [2]bool
	due     [2]intent
	late    [2]intent
	crashed bool
}

type kinPod struct {
	life, version                   int8
	exists, gated, deleting, leaves bool
	ended, record                   int64
}

func (p kinPod) works() bool { return p.exists && !p.gated }

type kinLock struct {
	state   plan.State
	life    int8 // of the pod that holds
	token   int64
	granted int64
	begun   bool
	ending  plan.Reason
	phase   plan.Phase
	backOff bool
}

type intent struct {
	kind          plan.ActionKind
	target        int8
	life, version int8
	next          kinLock
	writes, yes   bool
}

// kinRules are what one exploration assumes.
type kinRules struct {
	stays   bool // the older revision stays: its pods are made again
	awaited bool // somebody else waits for either lock
}

func uidOf(i int, life int8) string { return fmt.Sprintf("uid-web-%d-%d", i, life) }

// pod is pod i as a candidate of a lock.
func (w twoLocks) pod(i int, p kinPod) plan.Candidate {
	c := gated(fmt.Sprintf("web-%d-%d", i, p.life), time.Hour)
	c.Revision, c.Ended = int64(i+1), p.ended
	if !p.gated {
		c = onNode(c)
		c.Gated, c.Ready, c.RecordToken = false, true, p.record
		c.Record = ownerOf(here, c.Name)
		c.RecordedToken = fmt.Sprintf("%s#%d", c.Record, p.record)
	}
	c.Body.Deleting, c.Body.Deadline = p.deleting, in(podGrace)
	return c
}

// snapshot is what a pass for lock i goes by: the pods that it read a while ago, and the other lock's status as
// it is now.
func (w twoLocks) snapshot(i int, r kinRules) plan.Snapshot {
	l, other, o := w.locks[i], w.locks[1-i], w.seen[i][1-i]
	s := base()
	me := w.pod(i, w.seen[i][i])
	if l.backOff {
		me.BackOffUntil = in(time.Minute)
	}
	if w.seen[i][i].exists {
		s.Candidates = append(s.Candidates, me)
	}
	s.Status = plan.Status{State: l.state, HighestSeen: l.granted, Ending: l.ending}
	s.Store.Phase, s.Store.Awaited = l.phase, r.awaited
	if l.token != 0 {
		holds := w.pod(i, kinPod{life: l.life, gated: true})
		s.Status.Holder, s.Status.Token, s.Status.FencingToken = holderOf(here, holds.Name), fmt.Sprintf("%s#%d", ownerOf(here, holds.Name), l.token), l.token
		s.Status.AcquiredAt = in(-time.Second)
		if l.begun {
			s.Status.StartedAt = in(-time.Second)
		}
		if seen := w.seen[i][i]; l.life != seen.life || !seen.exists {
			holds.Body = plan.Body{Final: true, Known: true, Bound: true, Deleting: true, Stopped: true, VanishedAt: now}
			s.Candidates = append(s.Candidates, holds)
		}
	}
	if l.phase != plan.NoEntry {
		name := fmt.Sprintf("web-%d-%d", i, l.life)
		s.Store.Owner, s.Store.Asker = ownerOf(here, name), holderOf(here, name)
		s.Store.Token, s.Store.FencingToken = fmt.Sprintf("%s#%d", s.Store.Owner, l.granted), l.granted
		s.Store.ValidUntil, s.Store.GrantedAt = in(ttl-time.Second), in(-time.Second)
	}
	if !o.exists {
		return s
	}
	k := plan.Kin{Name: "kin", UID: uidOf(1-i, o.life), Group: "web", Revision: int64(2 - i), Active: o.works()}
	k.Holding = !k.Active && other.life == o.life && other.token > o.ended && (other.state == plan.Held || other.state == plan.Fencing)
	s.Kin = append(s.Kin, k)
	if k.Active && s.Status.State == plan.Held && !l.begun && me.Gated {
		stray := w.pod(1-i, o)
		stray.Stray, stray.Record, stray.RecordedToken = true, "", ""
		stray.Replaceable = i == 1 && !r.stays
		s.Candidates = append(s.Candidates, stray)
	}
	return s
}

// decide turns a decision into what is about to be done.
func (w *twoLocks) decide(i int, r kinRules) {
	s := w.snapshot(i, r)
	d := plan.Decide(now, s)
	l := w.locks[i]
	next := l
	if st := d.Status; st != s.Status {
		next.state, next.ending, next.begun = st.State, st.Ending, !st.StartedAt.IsZero()
		next.token = st.FencingToken
		if st.State == plan.Fencing && l.state != plan.Fencing && st.Ending == plan.LockChanged {
			next.backOff = true
		}
		if st.State == plan.Idle || st.State == plan.Waiting {
			next.token = 0
		}
	}
	n := intent{kind: d.Action.Kind, next: next, writes: next != l, yes: true, target: int8(i)}
	if d.Action.Target.Stray {
		n.target = int8(1 - i)
	}
	n.life, n.version = w.seen[i][n.target].life, w.seen[i][n.target].version
	w.looked[i], w.seen[i], w.due[i] = false, [2]kinPod{}, intent{}
	if n.kind != plan.NoAction || n.writes {
		w.due[i] = n
	}
}

// effect carries out what is on a pod; false if the API server refuses it.
func (w *twoLocks) effect(d intent, token int64) bool {
	p := &w.pods[d.target]
	if p.life != d.life || p.version != d.version {
		return false
	}
	p.version++
	switch d.kind {
	case plan.Start:
		p.gated, p.record = false, token
	case plan.Spoil:
		p.ended = token
	case plan.Stop, plan.Retire:
		p.deleting, p.leaves = true, d.kind == plan.Retire
	}
	return true
}

// apply does what was decided: the effect, and then the status. It reports false for what must not come up.
func (w *twoLocks) apply(i int) bool {
	d, l := w.due[i], &w.locks[i]
	w.due[i] = intent{}
	phase, life := l.phase, l.life
	switch d.kind {
	case plan.NoAction:
	case plan.Contend:
		phase, life = plan.Asking, d.life
	case plan.CallOff, plan.Forget:
		phase = plan.NoEntry
	case plan.Release:
		phase = plan.GivenBack
	case plan.Start, plan.Spoil, plan.Stop, plan.Retire:
		if !w.effect(d, l.token) {
			return true
		}
	default:
		return false
	}
	d.next.phase, d.next.life, d.next.granted, d.next.backOff = phase, life, l.granted, d.next.backOff || l.backOff
	*l = d.next
	return true
}

// crash loses whatever the decider knew; a start may be under way.
func (w *twoLocks) crash() {
	w.crashed = true
	for i := range w.locks {
		if w.due[i].kind == plan.Start {
			w.late[i] = w.due[i]
		}
		w.due[i], w.looked[i], w.seen[i] = intent{}, false, [2]kinPod{}
		l := &w.locks[i]
		l.backOff, l.phase = false, plan.NoEntry
		if st := (plan.Status{State: l.state, Holder: plan.Holder{Cluster: here}}); st.Ours(here) {
			l.phase = plan.Granted
		}
	}
}

// die lets the kubelet end a pod that is being deleted; its controller may make another.
func (w *twoLocks) die(i int) {
	p := &w.pods[i]
	if p.leaves {
		*p = kinPod{life: p.life, gated: true, version: p.version + 1}
		return
	}
	*p = kinPod{life: p.life + 1, exists: true, gated: true}
}

// steps are all that can happen next.
func (w twoLocks) steps(r kinRules, broken func(string)) []twoLocks {
	var out []twoLocks
	try := func(can bool, step func(n *twoLocks)) {
		if can {
			n := w
			step(&n)
			out = append(out, n)
		}
	}
	for i := range 2 {
		l := w.locks[i]
		try(!w.looked[i] && !w.due[i].yes, func(n *twoLocks) { n.seen[i], n.looked[i] = n.pods, true })
		try(w.looked[i], func(n *twoLocks) { n.decide(i, r) })
		try(w.due[i].yes, func(n *twoLocks) {
			if !n.apply(i) {
				broken(fmt.Sprintf("lock %d: %s", i, w.due[i].kind))
			}
		})
		try(l.phase == plan.Asking && l.granted < 2, func(n *twoLocks) { n.locks[i].phase, n.locks[i].granted = plan.Granted, l.granted+1 })
		try(l.backOff, func(n *twoLocks) { n.locks[i].backOff = false })
		try(w.pods[i].deleting && w.pods[i].life < 2, func(n *twoLocks) { n.die(i) })
		try(w.late[i].yes, func(n *twoLocks) { n.late[i] = intent{}; n.effect(w.late[i], w.late[i].next.token) })
	}
	try(!w.crashed, func(n *twoLocks) { n.crash() })
	return out
}

// settles runs on without faults and tells whether the newer pod works in the end, and it alone.
func (w twoLocks) settles(r kinRules) bool {
	for range 60 {
		for i := range 2 {
			if !w.due[i].yes {
				w.seen[i] = w.pods
				w.decide(i, r)
			}
			w.apply(i)
			if l := &w.locks[i]; l.phase == plan.Asking {
				l.phase, l.granted = plan.Granted, l.granted+1
			}
			if w.pods[i].deleting {
				w.die(i)
			}
		}
	}
	return w.pods[1].works() && !w.pods[0].works()
}

// TestTwoLocksOfOneWorkload visits every state that the two locks of a workload which changed its lock can get
// into, a crash at any moment included.
func TestTwoLocksOfOneWorkload(t *testing.T) {
	waits, works := kinPod{exists: true, gated: true}, kinPod{exists: true, record: 1}
	held := kinLock{state: plan.Held, token: 1, granted: 1, begun: true, phase: plan.Granted}
	free := kinLock{state: plan.Idle}
	for name, tc := range map[string]struct {
		rules kinRules
		pods  [2]kinPod
		locks [2]kinLock
	}{
		"both wait": {pods: [2]kinPod{waits, waits}, locks: [2]kinLock{free, free}},
		"both wait, and the older revision stays":     {pods: [2]kinPod{waits, waits}, locks: [2]kinLock{free, free}, rules: kinRules{stays: true}},
		"the older works":                             {pods: [2]kinPod{works, waits}, locks: [2]kinLock{held, free}},
		"the older works, and its revision stays":     {pods: [2]kinPod{works, waits}, locks: [2]kinLock{held, free}, rules: kinRules{stays: true}},
		"the older works, and others wait":            {pods: [2]kinPod{works, waits}, locks: [2]kinLock{held, free}, rules: kinRules{awaited: true}},
		"the older works, stays, and others wait too": {pods: [2]kinPod{works, waits}, locks: [2]kinLock{held, free}, rules: kinRules{stays: true, awaited: true}},
		"the newer works":                             {pods: [2]kinPod{waits, works}, locks: [2]kinLock{free, held}, rules: kinRules{stays: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := twoLocks{pods: tc.pods, locks: tc.locks}
			from := map[twoLocks]int{first: -1}
			all := []twoLocks{first}
			broken := ""
			for i := 0; i < len(all); i++ {
				w := all[i]
				switch {
				case w.pods[0].works() && w.pods[1].works():
					broken = "both pods work"
				case i%97 == 0 && !w.settles(tc.rules):
					broken = "it does not settle"
				}
				for _, n := range w.steps(tc.rules, func(what string) { broken = what }) {
					if _, known := from[n]; !known {
						from[n] = i
						all = append(all, n)
					}
				}
				if broken != "" {
					for at := i; at >= 0; at = from[all[at]] {
						t.Logf("%+v", all[at])
					}
					t.Fatal(broken, " (newest state first)")
				}
			}
			t.Logf("%d states", len(all))
		})
	}
}
