package plan_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// check holds a decision against the order of effects.
func (w *world) check(s *site, snap plan.Snapshot, dec plan.Decision) {
	st, next, a := snap.Status, dec.Status, dec.Action
	switch a.Kind {
	case plan.Start:
		fenceAt := snap.Store.ValidUntil.Add(-fenceGrace - margin)
		if st.State != plan.Held || st.Holder.UID != a.Target.UID || snap.Store.Phase != plan.Granted ||
			snap.Store.Token != st.Token || !w.now.Before(fenceAt) || w.now.Before(st.NotBefore) {
			w.fail("%s starts %s without a grant that is good for it", s.name, a.Target.Name)
		}
	case plan.Release:
		if st.State != plan.Releasing || !a.Unclean && s.works(st.Holder.UID) {
			w.fail("%s gives back the key of %s, which still works", s.name, st.Holder.Name)
		}
	case plan.Spoil, plan.Unlabel:
		if a.Target.UID == st.Holder.UID && st.State != plan.Fencing {
			w.fail("%s: %s before the status says Fencing", s.name, a.Kind)
		}
	case plan.Stop, plan.Suspend:
		if a.Target.UID == st.Holder.UID && st.Ours(s.name) && st.State != plan.Fencing {
			w.fail("%s stops the holder before the status says Fencing", s.name)
		}
	case plan.Reset:
		if o := s.findJob(a.Target.UID); o != nil && o.noted == o.suspended && !o.suspended {
			w.fail("%s resets a Job that is not stale", s.name)
		}
	case plan.Continue, plan.Record, plan.Contend, plan.CallOff, plan.Sweep, plan.Forget, plan.Retire, plan.NoAction:
	}
	if a.Kind != plan.NoAction && next.Ours(s.name) && next.State != st.State {
		w.fail("%s changes %s to %s in one pass with %s", s.name, st.State, next.State, a.Kind)
	}
	if w.ended[next.Token] && (next.State == plan.Held || next.State == plan.Settling) {
		w.fail("%s holds again under %s", s.name, next.Token)
	}
	if next.HighestSeen < st.HighestSeen {
		w.fail("%s forgets fencing token %d", s.name, st.HighestSeen)
	}
}

// checkFencing: every tenure that starts has a higher fencing token than all that started before.
// Once the store has lost data, one that still counts on its grant may start after a later one.
func (w *world) checkFencing(st plan.Status) {
	if w.loses == 0 && st.FencingToken < w.started {
		w.fail("fencing token %d after %d", st.FencingToken, w.started)
	}
	w.started = max(w.started, st.FencingToken)
}

// walk is one kind of world, and what goes wrong in it.
type walk struct {
	mode   plan.Mode
	kind   string // Pod if empty
	alone  bool   // one cluster, not two
	steady bool   // deciders do not crash between two effects
	rules  func(*plan.Lock)
	faults []func(*world)
	// overlap is for how long two may work after the last fault; zero means never.
	overlap time.Duration
}

const (
	walkFor    = 8 * time.Minute
	recoverFor = 10 * time.Minute
	quietFor   = 2 * time.Minute
)

// run lets faults happen for a while, then none, and reports what broke.
func (k walk) run(seed uint64) *world {
	rules := lockRules()
	if k.rules != nil {
		k.rules(&rules)
	}
	clusters := 2
	if k.alone {
		clusters = 1
	}
	w := newWorld(seed, clusters, k.mode, rules)
	for _, s := range w.sites {
		s.kind = cmp.Or(k.kind, plan.KindPod)
	}
	w.crashes = !k.steady
	var lastFault time.Time
	for w.now.Sub(now) < walkFor && len(w.broken) == 0 {
		if w.chance(12) {
			k.faults[w.rnd.IntN(len(k.faults))](w)
			lastFault = w.now
		}
		w.second()
		k.checkOverlap(w, lastFault)
	}
	if len(w.broken) == 0 {
		k.recover(w)
	}
	return w
}

// recover lets everything come back: in the end one works, and nothing is left to do.
func (k walk) recover(w *world) {
	w.crashes = false
	w.note("no more faults")
	w.heal()
	healed := w.now
	for w.now.Sub(healed) < recoverFor && len(w.broken) == 0 {
		if w.now.Sub(healed) < recoverFor-quietFor {
			w.acts = 0
		}
		w.second()
		k.checkOverlap(w, healed)
	}
	if len(w.broken) == 0 && (len(w.acting()) != 1 || w.acts > 0) {
		w.fail("in the end %v work, and %d effects disturb them; %+v", w.acting(), w.acts, w.sites[0].status)
	}
}

func (k walk) checkOverlap(w *world, lastFault time.Time) {
	two := w.acting()
	if len(two) < 2 || k.overlap > 0 && w.now.Sub(lastFault) < k.overlap {
		return
	}
	w.fail("%v work at the same time", two)
}

func TestWalks(t *testing.T) {
	kube := []func(*world){askRelease, deletePod, removePod, breakNode, mendNode, rebootNode, loseNode, restartConch, unreadyPod}
	links := []func(*world){askRelease, deletePod, cutLink, mendLink, restartConch, unreadyPod}
	everything := append(append([]func(*world){loseKey, loseStore, loseStatus}, kube...), links...)
	inside := append(append([]func(*world){loseKey, loseStore}, kube...), cutLink, mendLink)
	demoted := func(l *plan.Lock) { l.Demote = true }
	holding := func(l *plan.Lock) { l.HoldOnLoss = true }
	releasing := func(l *plan.Lock) { l.ReleaseLost = true }
	walks := map[string]walk{
		"while the store is well, one pod works whatever happens to clusters":    {mode: plan.Exclusive, faults: kube},
		"while the store is well, one leader leads whatever happens to clusters": {mode: plan.Leader, faults: kube},
		"while nodes are well, one pod works though the store is cut off":        {mode: plan.Exclusive, faults: links},
		"while nodes are well, one leader leads though the store is cut off":     {mode: plan.Leader, faults: links},
		"under Demote the label moves in order":                                  {mode: plan.Leader, faults: links, rules: demoted},
		"inside one cluster one pod works, whatever the store does":              {mode: plan.Exclusive, alone: true, faults: inside, rules: holding},
		"inside one cluster one leader leads, whatever the store does":           {mode: plan.Leader, alone: true, faults: inside, rules: holding},
		"whoever gets past the gate by hand is found":                            {mode: plan.Exclusive, faults: []func(*world){bypass, deletePod, restartConch}, overlap: 5 * time.Minute},
		"whoever takes the label by hand is found":                               {mode: plan.Leader, faults: []func(*world){bypass, deletePod, restartConch}, overlap: 5 * time.Minute},
		"a holder whose status is lost is known by itself":                       {mode: plan.Exclusive, steady: true, faults: []func(*world){loseStatus, deletePod, askRelease, restartConch}},
		"with Release a node that stays away holds nobody up":                    {mode: plan.Exclusive, faults: kube, rules: releasing, overlap: time.Hour},
		"after data loss two may work, but not for long":                         {mode: plan.Exclusive, faults: everything, overlap: 3 * time.Minute},
		"after data loss two may lead, but not for long":                         {mode: plan.Leader, faults: everything, overlap: 3 * time.Minute},
	}
	runWalks(t, walks, 160)
}

func runWalks(t *testing.T, walks map[string]walk, n uint64) {
	t.Helper()
	if s := os.Getenv("CONCH_WALKS"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	for name, k := range walks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range n {
				if w := k.run(seed); len(w.broken) > 0 {
					t.Fatalf("seed %d: %v\n%s", seed, w.broken, w.story())
				}
			}
		})
	}
}

func (w *world) anySite() *site { return w.sites[w.rnd.IntN(len(w.sites))] }

func (w *world) anyDecider() *decider { return w.deciders[w.rnd.IntN(len(w.deciders))] }

func (w *world) anyNode() *machine { return w.anySite().nodes[w.rnd.IntN(2)] }

func (w *world) anyPod() (*site, *object) {
	s := w.anySite()
	if len(s.objects) == 0 {
		return s, nil
	}
	return s, s.objects[w.rnd.IntN(len(s.objects))]
}

func deletePod(w *world) {
	if s, o := w.anyPod(); o != nil {
		w.note("fault: %s deletes %s", s.name, o.Name)
		s.delete(w.now, o, o.Body.Grace)
	}
}

// askRelease is an operator who wants the lock to move on.
func askRelease(w *world) {
	w.rules.ReleaseAsked = w.anySite().status.FencingToken
	w.note("fault: an operator asks to release %d", w.rules.ReleaseAsked)
	w.nodesChanged()
}

// bypass lets a pod work without the lock.
func bypass(w *world) {
	s, o := w.anyPod()
	if o == nil || o.Active() || o.Body.Deleting {
		return
	}
	w.note("fault: %s of %s works without the lock", o.Name, s.name)
	o.Gated, o.Leading = false, o.Mode == plan.Leader
	s.procs[o.UID].acting = true
	s.touch(o)
}

func removePod(w *world) {
	if s, o := w.anyPod(); o != nil {
		w.note("fault: %s removes %s by force", s.name, o.Name)
		s.remove(w.now, o)
	}
}

func unreadyPod(w *world) {
	if s, o := w.anyPod(); o != nil && o.Ready {
		w.note("fault: %s of %s is not ready", o.Name, s.name)
		s.ready(w.now, o, false)
	}
}

func breakNode(w *world) {
	if n := w.anyNode(); n.up {
		w.note("fault: %s cannot be reached", n.name)
		n.up = false
		w.nodesChanged()
	}
}

func mendNode(w *world) {
	n := w.anyNode()
	if !n.up && !n.gone {
		w.note("%s can be reached", n.name)
		n.up, n.since = true, w.now
	}
	if n.gone && w.now.Sub(n.since) > time.Minute {
		w.replace(n)
	}
	w.nodesChanged()
}

// replace brings a new machine in place of one that is gone; what is bound to that one stays so.
func (w *world) replace(n *machine) {
	for _, s := range w.sites {
		for i := range s.nodes {
			if s.nodes[i] == n {
				s.nodes[i] = &machine{name: fmt.Sprintf("%s-%d", n.name, w.now.Unix()), up: true, since: w.now}
			}
		}
	}
}

func (w *world) nodesChanged() {
	for _, d := range w.deciders {
		d.dirty = true
	}
}

// rebootNode ends every process; the kubelet starts again what nobody deleted.
func rebootNode(w *world) {
	n := w.anyNode()
	if n.gone {
		return
	}
	w.note("fault: %s reboots", n.name)
	w.killAll(n)
	n.boot++
	n.up, n.since = true, w.now
	w.nodesChanged()
}

// loseNode takes a machine away for good.
func loseNode(w *world) {
	n := w.anyNode()
	if n.gone || !w.chance(3) {
		return
	}
	w.note("fault: %s is gone", n.name)
	w.killAll(n)
	n.gone, n.up, n.since = true, false, w.now
	w.nodesChanged()
}

func (w *world) killAll(n *machine) {
	for _, s := range w.sites {
		for _, p := range s.procs {
			if p.on == n {
				p.alive = false
			}
		}
	}
}

func cutLink(w *world) {
	d := w.anyDecider()
	w.note("fault: %s is cut off from the store", d.s.name)
	d.linked = false
}

func mendLink(w *world) {
	for _, d := range w.deciders {
		d.linked = true
	}
}

func restartConch(w *world) {
	d := w.anyDecider()
	w.note("fault: conch of %s restarts", d.s.name)
	d.restart(w.now)
}

func loseKey(w *world) {
	w.note("fault: the key is deleted by hand")
	w.store.owner = ""
	w.loses++
}

func loseStore(w *world) {
	w.note("fault: the store forgets everything")
	w.store = store{}
	w.loses++
}

// loseStatus is a lock object that was deleted and made again.
func loseStatus(w *world) {
	d := w.anyDecider()
	w.note("fault: the status of %s is lost", d.s.name)
	delete(w.ended, d.s.status.Token)
	d.s.status = plan.Status{State: plan.Idle}
	d.dirty = true
}

func (w *world) heal() {
	mendLink(w)
	for _, s := range w.sites {
		for _, n := range append([]*machine(nil), s.nodes...) {
			switch {
			case n.gone:
				w.replace(n)
			case !n.up:
				n.up, n.since = true, w.now
			}
		}
	}
	w.nodesChanged()
}
