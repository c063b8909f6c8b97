package plan_test

import (
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
		if p := s.procs[st.Holder.UID]; st.State != plan.Releasing || !a.Unclean && p != nil && p.alive && p.acting {
			w.fail("%s gives back the key of %s, which still works", s.name, st.Holder.Name)
		}
	case plan.Spoil, plan.Unlabel:
		if a.Target.UID == st.Holder.UID && st.State != plan.Fencing {
			w.fail("%s: %s before the status says Fencing", s.name, a.Kind)
		}
	case plan.Stop:
		if a.Target.UID == st.Holder.UID && st.Ours(s.name) && st.State != plan.Fencing {
			w.fail("%s stops the holder before the status says Fencing", s.name)
		}
	case plan.Continue, plan.Record, plan.Contend, plan.CallOff, plan.Sweep, plan.Forget, plan.NoAction:
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
func (w *world) checkFencing(st plan.Status) {
	if st.FencingToken < w.started {
		w.fail("fencing token %d after %d", st.FencingToken, w.started)
	}
	w.started = max(w.started, st.FencingToken)
}

// walk is one kind of world, and what goes wrong in it.
type walk struct {
	mode   plan.Mode
	rules  func(*plan.Lock)
	faults []func(*world)
	// overlap is for how long two may work after the last fault; zero means never.
	overlap time.Duration
}

const (
	walkFor    = 8 * time.Minute
	recoverFor = 12 * time.Minute
)

// run lets faults happen for a while, then none, and reports what broke.
func (k walk) run(seed uint64) *world {
	rules := lockRules()
	if k.rules != nil {
		k.rules(&rules)
	}
	w := newWorld(seed, k.mode, rules)
	w.crashes = true
	var lastFault time.Time
	for w.now.Sub(now) < walkFor && len(w.broken) == 0 {
		if w.chance(12) {
			k.faults[w.rnd.IntN(len(k.faults))](w)
			lastFault = w.now
		}
		w.second()
		k.checkOverlap(w, lastFault)
	}
	w.crashes = false
	w.note("no more faults")
	w.heal()
	for w.now.Sub(now) < walkFor+recoverFor && len(w.broken) == 0 {
		w.second()
		k.checkOverlap(w, w.now.Add(-w.now.Sub(now.Add(walkFor))))
	}
	if len(w.broken) == 0 && len(w.acting()) != 1 {
		w.fail("nobody works in the end: %v; %+v; %+v", w.acting(), w.sites[0].status, w.sites[1].status)
	}
	return w
}

func (k walk) checkOverlap(w *world, lastFault time.Time) {
	two := w.acting()
	if len(two) < 2 || k.overlap > 0 && w.now.Sub(lastFault) < k.overlap {
		return
	}
	w.fail("%v work at the same time", two)
}

func TestWalks(t *testing.T) {
	kube := []func(*world){deletePod, removePod, breakNode, mendNode, rebootNode, loseNode, restartConch, unreadyPod}
	links := []func(*world){deletePod, cutLink, mendLink, restartConch, unreadyPod}
	everything := append(append([]func(*world){loseKey, loseStore, loseStatus}, kube...), links...)
	demoted := func(l *plan.Lock) { l.Demote = true }
	walks := map[string]walk{
		"while the store is well, one pod works whatever happens to clusters":    {mode: plan.Exclusive, faults: kube},
		"while the store is well, one leader leads whatever happens to clusters": {mode: plan.Leader, faults: kube},
		"while nodes are well, one pod works though the store is cut off":        {mode: plan.Exclusive, faults: links},
		"while nodes are well, one leader leads though the store is cut off":     {mode: plan.Leader, faults: links},
		"under Demote the label moves in order":                                  {mode: plan.Leader, faults: links, rules: demoted},
		"after data loss two may work, but not for long":                         {mode: plan.Exclusive, faults: everything, overlap: 3 * time.Minute},
		"after data loss two may lead, but not for long":                         {mode: plan.Leader, faults: everything, overlap: 3 * time.Minute},
	}
	n := uint64(300)
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
	d := w.deciders[w.rnd.IntN(2)]
	w.note("fault: %s is cut off from the store", d.s.name)
	d.linked = false
}

func mendLink(w *world) {
	for _, d := range w.deciders {
		d.linked = true
	}
}

func restartConch(w *world) {
	d := w.deciders[w.rnd.IntN(2)]
	w.note("fault: conch of %s restarts", d.s.name)
	d.restart(w.now)
}

func loseKey(w *world) {
	w.note("fault: the key is deleted by hand")
	w.store.owner = ""
}

func loseStore(w *world) {
	w.note("fault: the store forgets everything")
	w.store = store{}
}

// loseStatus is a lock object that was deleted and made again.
func loseStatus(w *world) {
	d := w.deciders[w.rnd.IntN(2)]
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
