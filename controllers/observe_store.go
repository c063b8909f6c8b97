package controllers

import (
	"errors"
	"strings"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// observeStore translates what the keeper knows about the entry that matters now: the one of the
// status's holder, else the one of the attempt under way.
func (p *pass) observeStore() plan.Store {
	st := plan.Store{KeptSince: p.r.started}
	if p.keeper == nil {
		return st
	}
	st.Answered = !p.keeper.Health().Answered.IsZero()
	id, since, ok := p.entry()
	if !ok {
		return st
	}
	st.KeptSince = since
	if a := p.mem.attempt; a != nil && a.id == id {
		st.Asker, st.Continuing = a.candidate, a.continuing
	}
	state, ok := p.keeper.State(id)
	if !ok {
		return st
	}
	return p.translate(st, state)
}

// entry names the keeper's entry that this pass is about, and since when it is kept here.
func (p *pass) entry() (keeper.ID, time.Time, bool) {
	switch {
	case p.mem.attempt != nil && (p.mem.attempt.continuing || !p.ours()):
		return p.mem.attempt.id, p.mem.attempt.since, true
	case p.mem.kept != nil && p.ours():
		return p.mem.kept.id, p.mem.kept.since, true
	}
	return keeper.ID{}, time.Time{}, false
}

func (p *pass) translate(st plan.Store, state keeper.State) plan.Store {
	g := state.Acquired.Grant
	st.Phase = phaseOf(state.Phase)
	st.Owner, st.Token, st.FencingToken = string(state.ID.Owner), string(g.Token), int64(g.FencingToken)
	st.ValidUntil, st.GrantedAt, st.Unanswered, st.Awaited = g.ValidUntil, state.GrantedAt, state.ErrSince, state.Awaited
	if wait := state.Acquired.StartAfter; wait > 0 {
		st.NotBefore = state.GrantedAt.Add(wait)
	}
	if st.Phase == plan.Granted {
		st.Continuing = false
	}
	st.Seen, st.Awaited = p.seen(state.Seen), state.Awaited
	return st
}

func phaseOf(p keeper.Phase) plan.Phase {
	switch p {
	case keeper.PhaseWaiting:
		return plan.Asking
	case keeper.PhaseHeld:
		return plan.Granted
	case keeper.PhaseLost:
		return plan.Lost
	case keeper.PhaseReleasing, keeper.PhaseAbandoning:
		return plan.GivingUp
	case keeper.PhaseReleased, keeper.PhaseAbandoned:
		return plan.GivenBack
	}
	return plan.NoEntry
}

// seen classifies who has the key.
func (p *pass) seen(v lock.View) plan.Seen {
	s := plan.Seen{Token: string(v.Token), FencingToken: int64(v.FencingToken), Highest: int64(v.Highest)}
	switch v.State {
	case "":
		return plan.Seen{}
	case lock.ViewFree:
		s.Presence = plan.Free
	case lock.ViewHeld:
		s.Holder, s.Presence = p.presence(v.Owner)
	default:
		s.Presence = plan.Foreign
	}
	return s
}

// presence tells whether an owner is a candidate of this lock, somebody else of this cluster, what
// is left of a dead attempt, or somebody away.
func (p *pass) presence(owner lock.Owner) (plan.Holder, plan.Presence) {
	h, ok := parseOwner(owner)
	switch {
	case !ok:
		return plan.Holder{Name: string(owner), Owner: string(owner)}, plan.Away
	case h.Cluster != p.r.opts.Cluster:
		return h, plan.Away
	case p.isCandidate(h.UID):
		return h, plan.Here
	case p.namedElsewhere(h.Owner), p.alive(h):
		return h, plan.Beside
	}
	return h, plan.Remains
}

func (p *pass) isCandidate(uid string) bool {
	for _, c := range p.candidates {
		if c.UID == uid && c.Body.Exists {
			return true
		}
	}
	return false
}

// ownerOf is the identity under which a candidate of this cluster contends.
func ownerOf(cluster string, c plan.Candidate, nonce string) lock.Owner {
	return lock.NewOwner(strings.Join([]string{cluster, c.Namespace, c.Kind, c.Name, c.UID}, "/"), nonce)
}

// parseOwner reads `cluster/namespace/kind/name/uid/nonce`. A program that uses the library may
// have owners of another form.
func parseOwner(o lock.Owner) (plan.Holder, bool) {
	parts := strings.Split(string(o), "/")
	if len(parts) != 6 {
		return plan.Holder{}, false
	}
	return plan.Holder{
		Cluster: parts[0], Namespace: parts[1], Kind: parts[2], Name: parts[3], UID: parts[4], Owner: string(o),
	}, true
}

// unknown extracts the reason and text of a missing answer, for conditions.
func unknown(err error) (lock.Reason, string, bool) {
	if err == nil || !errors.Is(err, lock.ErrUnknown) {
		return "", "", false
	}
	return lock.ReasonOf(err), err.Error(), true
}
