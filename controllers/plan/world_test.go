package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// world is two clusters that share one lock, and whoever watches over them. Everything in it comes
// from one seed.
type world struct {
	rnd      *rand.Rand
	now      time.Time
	rules    plan.Lock
	store    store
	sites    []*site
	deciders []*decider
	// late are effects of deciders that were paused on the way and died; they arrive all the same.
	late []lateEffect
	// ended are the tokens whose tenure a status called ended; started is the newest that started.
	ended   map[string]bool
	started int64
	// loses counts how often the store lost the key.
	loses   int
	crashes bool
	acts    int
	log     []string
	broken  []string
}

type lateEffect struct {
	at      time.Time
	s       *site
	uid     string
	version int
	apply   func(now time.Time)
}

func newWorld(seed uint64, clusters int, mode plan.Mode, rules plan.Lock) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), now: now, rules: rules, ended: map[string]bool{}}
	for _, name := range []string{"east", "west"}[:clusters] {
		s := &site{name: name, rnd: w.rnd, mode: mode, kind: plan.KindPod, status: plan.Status{State: plan.Idle}, procs: map[string]*proc{}}
		for i := range 2 {
			s.nodes = append(s.nodes, &machine{name: fmt.Sprintf("%s-node-%d", name, i), up: true, since: now.Add(-time.Hour)})
		}
		d := &decider{w: w, s: s, linked: true}
		d.restart(now)
		s.changed = func() { d.dirty = true }
		s.buried = func(o object) { d.graves[o.UID] = o }
		w.sites, w.deciders = append(w.sites, s), append(w.deciders, d)
	}
	return w
}

func (w *world) chance(oneIn int) bool { return w.rnd.IntN(oneIn) == 0 }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%6s ", w.now.Sub(now))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.note("BROKEN: "+format, args...)
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// second lets everybody do what they do in a second. Deciders look only when there is news, or when
// they said that they would, so that a step that nothing wakes is found out.
func (w *world) second() {
	w.now = w.now.Add(time.Second)
	for i, d := range w.deciders {
		w.sites[i].tick(w.now)
		d.keep(w.now)
	}
	w.arrive()
	for _, d := range w.deciders {
		for passes := 0; d.dirty || !d.due.IsZero() && !d.due.After(w.now); passes++ {
			if passes > 25 {
				w.fail("%s decides over and over: %+v", d.s.name, d.s.status)
				return
			}
			d.pass(w.now)
		}
	}
}

// arrive lets effects arrive that were under way when their decider died. The API server refuses
// them if the object has changed.
func (w *world) arrive() {
	for _, l := range w.late {
		if v, there := l.s.versionOf(l.uid); there && v == l.version && !w.now.After(l.at) {
			l.apply(w.now)
		}
	}
	w.late = w.late[:0]
}

// pass is observe, decide, act, report, with a crash between any two of them.
func (d *decider) pass(now time.Time) {
	w := d.w
	d.dirty, d.due = false, time.Time{}
	d.follow(now)
	snap := d.observe(now)
	dec := plan.Decide(now, snap)
	w.check(d.s, snap, dec)
	if dec.Action.Kind != plan.NoAction {
		w.acts++
		w.note("%s %s %s (%s)", d.s.name, dec.Action.Kind, dec.Action.Target.Name, dec.Reason)
	}
	if w.crashes && w.chance(60) {
		d.crash(now, snap, dec)
		return
	}
	d.act(now, snap, dec)
	if w.crashes && w.chance(60) {
		w.note("%s crashes before the status", d.s.name)
		d.restart(now)
		return
	}
	if dec.Status != d.s.status {
		if dec.Status.State != d.s.status.State || dec.Status.Token != d.s.status.Token {
			w.note("%s %s -> %s %s (%s: %s)", d.s.name, d.s.status.State, dec.Status.State, dec.Status.Token, dec.Reason, dec.Message)
		}
		d.s.status, d.dirty = dec.Status, true
		if st := dec.Status; st.State == plan.Fencing || st.State == plan.Releasing {
			w.ended[st.Token] = true
		}
	}
	if dec.Revisit > 0 {
		d.due = now.Add(dec.Revisit)
	}
}

// crash loses the process; an effect on an object may be under way, for as long as it may be written.
func (d *decider) crash(now time.Time, snap plan.Snapshot, dec plan.Decision) {
	d.w.note("%s crashes before the effect", d.s.name)
	uid := aim(dec.Action)
	if version, there := d.s.versionOf(uid); there {
		at := now.Add(10 * time.Second)
		if end := snap.Store.ValidUntil.Add(-fenceGrace - margin); dec.Action.Kind == plan.Start && end.Before(at) {
			at = end
		}
		d.w.late = append(d.w.late, lateEffect{
			at: at, s: d.s, uid: uid, version: version,
			apply: func(now time.Time) { d.effect(now, snap.Status, dec.Action) },
		})
	}
	d.restart(now)
}

func (d *decider) act(now time.Time, snap plan.Snapshot, dec plan.Decision) {
	a, st := dec.Action, snap.Status
	switch a.Kind {
	case plan.NoAction:
	case plan.Contend:
		d.nonce++
		kind := a.Target.Kind
		owner := fmt.Sprintf("%s/shop/%s/%s/%s/%d", d.s.name, kind, a.Target.Name, a.Target.UID, int(now.UnixMilli())*100+d.nonce)
		asker := plan.Holder{Cluster: d.s.name, Namespace: "shop", Kind: kind, Name: a.Target.Name, UID: a.Target.UID, Grace: a.Target.Body.Grace}
		d.ask(now, attempt{owner: owner, asker: asker, since: now}, 0)
	case plan.Continue:
		d.ask(now, attempt{owner: st.Holder.Owner, asker: st.Holder, since: now, continuing: true}, st.FencingToken)
	case plan.CallOff:
		d.abandon(d.attempt.owner)
	case plan.Sweep:
		d.abandon(snap.Store.Seen.Holder.Owner)
	case plan.Release:
		d.giveBack(snap, a)
	case plan.Forget:
		if d.attempt != nil {
			delete(d.entries, d.attempt.owner)
			d.attempt = nil
		}
	default:
		d.effect(now, st, a)
	}
}

// aim is the object that an action is on.
func aim(a plan.Action) string {
	if a.Member.UID != "" {
		return a.Member.UID
	}
	return a.Target.UID
}

// effect writes on a pod or a Job.
func (d *decider) effect(now time.Time, st plan.Status, a plan.Action) {
	if o := d.s.find(aim(a)); o != nil {
		d.write(now, o, st, a)
	} else if j := d.s.findJob(aim(a)); j != nil {
		d.writeJob(j, st, a)
	}
}

func (d *decider) ask(now time.Time, a attempt, since int64) {
	st := d.s.status
	floor := max(st.HighestSeen, st.FencingToken) + 1
	d.attempt = &a
	d.entries[a.owner] = &entry{
		Store: plan.Store{Phase: plan.Asking, Owner: a.owner},
		req:   request{owner: a.owner, home: d.s.name + "/", floor: floor, since: since},
	}
}

func (d *decider) giveBack(snap plan.Snapshot, a plan.Action) {
	e := d.entries[snap.Status.Holder.Owner]
	token, asking := e.Token, e.Phase == plan.Asking
	e.Phase, e.drop = plan.GivingUp, func(now time.Time) {
		d.w.store.release(now, token, !a.Unclean)
		if asking {
			d.w.store.abandon(snap.Status.Holder.Owner)
		}
	}
}

// write carries out an effect on an object.
func (d *decider) write(now time.Time, o *object, st plan.Status, a plan.Action) {
	p := d.s.procs[o.UID]
	switch a.Kind {
	case plan.Start:
		o.Gated, o.Leading = false, o.Mode == plan.Leader
		p.acting = true
		if d.s.kind == plan.KindDeployment {
			p.tenure = st.Holder.Owner
		}
		d.record(o, st)
		d.w.checkFencing(st)
	case plan.Record:
		d.record(o, st)
	case plan.Spoil:
		o.Ended = st.FencingToken
	case plan.Unlabel:
		o.Leading, p.acting = false, false
		if st.Holder.UID == o.UID {
			o.Ended = st.FencingToken
		}
		o.UnlabelledSince = now
	case plan.Stop:
		d.s.delete(now, o, a.Grace)
		return
	}
	d.s.touch(o)
}

func (d *decider) record(o *object, st plan.Status) {
	o.Record, o.RecordToken = st.Holder.Owner, st.FencingToken
	o.RecordedToken = tokenOf(o.Record, o.RecordToken)
}

func (w *world) acting() []string {
	var out []string
	for _, s := range w.sites {
		out = append(out, s.acting()...)
	}
	return out
}

func (w *world) story() string {
	return strings.Join(w.log[max(0, len(w.log)-60):], "\n")
}
