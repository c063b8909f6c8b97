package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// entry is what a model keeper knows about one owner.
type entry struct {
	plan.Store
	req   request
	renew time.Time
	drop  func(now time.Time)
}

type attempt struct {
	owner      string
	asker      plan.Holder
	continuing bool
	since      time.Time
}

// decider is one process of conch: losing it loses all of this.
type decider struct {
	w       *world
	s       *site
	started time.Time
	linked  bool
	nonce   int
	entries map[string]*entry
	attempt *attempt
	kept    string
	keptAt  time.Time
	graves  map[string]object
	missed  map[string]time.Time
	heard   map[string]time.Time // the first heartbeat after a candidate was missed
	dirty   bool
	due     time.Time
}

func (d *decider) restart(now time.Time) {
	d.started, d.entries, d.attempt, d.kept = now, map[string]*entry{}, nil, ""
	d.graves, d.missed, d.heard, d.dirty = map[string]object{}, map[string]time.Time{}, map[string]time.Time{}, true
}

// keep is a second of the keeper's life.
func (d *decider) keep(now time.Time) {
	for _, owner := range slices.Sorted(maps.Keys(d.entries)) { // one seed, one walk
		e := d.entries[owner]
		if e.Phase == plan.Asking || e.Phase == plan.GivingUp || e.Phase == plan.Granted && !now.Before(e.renew) {
			d.call(now, e)
		}
	}
}

func (d *decider) call(now time.Time, e *entry) {
	lostReply := d.linked && e.Phase == plan.Asking && d.w.chance(20)
	if d.linked {
		d.answer(now, e, lostReply)
	}
	if silent := !d.linked || lostReply; silent != !e.Unanswered.IsZero() {
		e.Unanswered, d.dirty = time.Time{}, true
		if silent {
			e.Unanswered = now
		}
	}
}

func (d *decider) answer(now time.Time, e *entry, lostReply bool) {
	st := &d.w.store
	switch e.Phase {
	case plan.Asking:
		r := st.acquire(now, e.req)
		if lostReply {
			return
		}
		d.hear(now, e, r)
	case plan.Granted:
		if !st.renew(now, e.Token) {
			e.Phase, e.Seen, d.dirty = plan.Lost, d.see(now), true
			return
		}
		d.dirty = d.dirty || e.ValidUntil.IsZero()
		e.ValidUntil, e.renew = now.Add(ttl-ttl/100), now.Add(renewInterval)
	case plan.GivingUp:
		e.drop(now)
		e.Phase, d.dirty = plan.GivenBack, true
	}
}

func (d *decider) hear(now time.Time, e *entry, r reply) {
	st := &d.w.store
	seen := d.see(now)
	switch r {
	case granted:
		e.Phase, e.Token, e.FencingToken = plan.Granted, tokenOf(st.owner, st.fencing), st.fencing
		e.GrantedAt, e.ValidUntil, e.renew = now, now.Add(ttl-ttl/100), now.Add(renewInterval)
		if st.last.notBefore.After(now) {
			e.NotBefore = st.last.notBefore
		}
		d.dirty = true
	case gone:
		e.Phase, d.dirty = plan.Lost, true
		e.Seen = seen
	case refused:
		d.dirty = d.dirty || e.Seen.Token != seen.Token
		e.Seen = seen
		// What was seen on the way counts: a store that forgets it has lost data.
		e.req.floor = max(e.req.floor, seen.Highest+1)
	}
}

func (d *decider) see(now time.Time) plan.Seen {
	st := d.w.store
	if !st.live(now) {
		return plan.Seen{Presence: plan.Free, Highest: st.highest}
	}
	parts := strings.Split(st.owner, "/")
	h := plan.Holder{Cluster: parts[0], Namespace: parts[1], Kind: parts[2], Name: parts[3], UID: parts[4], Owner: st.owner}
	seen := plan.Seen{Presence: plan.Remains, Holder: h, Token: tokenOf(st.owner, st.fencing), FencingToken: st.fencing, Highest: st.highest}
	switch {
	case h.Cluster != d.s.name:
		seen.Presence = plan.Away
	case d.s.find(h.UID) != nil, d.s.findJob(h.UID) != nil, h.UID == d.s.workloadUID():
		seen.Presence = plan.Here
	}
	return seen
}

// follow makes the keeper keep what the status names, as every replica does before it decides.
func (d *decider) follow(now time.Time) {
	st := d.s.status
	if !st.Ours(d.s.name) {
		delete(d.entries, d.kept)
		d.kept = ""
		return
	}
	id := st.Holder.Owner
	if a := d.attempt; a != nil && a.owner != id {
		d.abandon(a.owner)
		d.attempt = nil
	}
	e := d.entries[id]
	if a := d.attempt; a != nil && a.continuing && e != nil && (e.Phase != plan.Granted || e.FencingToken > st.FencingToken) {
		return
	}
	if e == nil || e.FencingToken < st.FencingToken && e.Phase != plan.Asking {
		d.entries[id] = &entry{Store: plan.Store{Phase: plan.Granted, Owner: id, Token: st.Token, FencingToken: st.FencingToken}}
	}
	if d.kept != id {
		d.kept, d.keptAt = id, now
	}
	if d.attempt != nil {
		d.keptAt, d.attempt = d.attempt.since, nil
	}
}

func (d *decider) abandon(owner string) {
	e := d.entries[owner]
	if e == nil {
		e = &entry{}
		d.entries[owner] = e
	}
	e.Phase, e.drop = plan.GivingUp, func(time.Time) { d.w.store.abandon(owner) }
}

func (d *decider) observe(now time.Time) plan.Snapshot {
	s := plan.Snapshot{
		Lock: d.w.rules, Status: d.s.status,
		Self: plan.Self{Cluster: d.s.name, Deciding: true, Contending: true},
	}
	found := false
	if d.s.kind != plan.KindPod {
		s.Candidates, s.Store = d.composites(now), d.observeStore()
		return s
	}
	for _, o := range d.s.objects {
		c := o.Candidate
		d.place(now, &c, o.on)
		s.Candidates, found = append(s.Candidates, c), found || c.UID == s.Status.Holder.UID
	}
	if h := s.Status.Holder; s.Status.Ours(d.s.name) && !found {
		s.Candidates = append(s.Candidates, d.missing(now, h))
	}
	s.Store = d.observeStore()
	return s
}

// place tells about the node, of the holder alone, as little as the controllers may know.
func (d *decider) place(now time.Time, c *plan.Candidate, on *machine) {
	if on == nil || c.UID != d.s.status.Holder.UID {
		return
	}
	c.BootID = fmt.Sprint(on.boot)
	d.placeBody(now, c.UID, &c.Body, on, d.s.status.Holder.BootID)
}

// placeBody tells about the node that a body is on.
func (d *decider) placeBody(now time.Time, uid string, b *plan.Body, on *machine, was string) {
	boot := fmt.Sprint(on.boot)
	heard := time.Time{}
	if on.up && !on.gone {
		heard = now
		if _, known := d.heard[uid]; !known && !b.Exists && now.After(b.VanishedAt) {
			d.heard[uid] = now
		}
	}
	b.Node = plan.Node{HeardFirst: d.heard[uid], HeardAt: heard, Gone: on.gone, Ready: on.up && !on.gone, ReadySince: on.since, Rebooted: was != "" && was != boot}
}

func (d *decider) missing(now time.Time, h plan.Holder) plan.Candidate {
	if _, known := d.missed[h.UID]; !known {
		d.missed[h.UID] = now
	}
	c := plan.Candidate{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name, UID: h.UID, NodeName: h.Node, Body: plan.Body{Grace: h.Grace}}
	if grave, known := d.graves[h.UID]; known {
		c = grave.Candidate
		c.Body.Final = true
	}
	c.Body.Exists, c.Body.VanishedAt = false, d.missed[h.UID]
	if p := d.s.procs[h.UID]; p != nil && p.on != nil {
		d.place(now, &c, p.on)
		return c
	}
	// Nothing runs any more, so any node can tell.
	d.place(now, &c, &machine{up: true})
	c.Body.Node.Rebooted = false
	return c
}

func (d *decider) observeStore() plan.Store {
	owner, since := d.kept, d.keptAt
	var asker plan.Holder
	var continuing bool
	if a := d.attempt; a != nil && (a.continuing || !d.s.status.Ours(d.s.name)) {
		owner, since, asker, continuing = a.owner, a.since, a.asker, a.continuing
	}
	st := plan.Store{}
	if e := d.entries[owner]; e != nil {
		st = e.Store
	}
	st.Answered, st.KeptSince, st.Asker = true, since, asker
	st.Continuing = continuing && st.Phase != plan.Granted
	return st
}
