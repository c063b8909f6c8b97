package controllers

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// tickEntry is an entry of a keeper that this process made for a run.
type tickEntry struct {
	id     keeper.ID
	keeper string
	// epoch is the term in which it was made, 0 for what the status names: that is kept by every replica.
	epoch int64
	// retry is what a claim asks by.
	retry bool
}

// keepTicks has the keeper renew what the status says was started here, on every replica. Claims are the
// decider's alone; those of an earlier term are forgotten, and asked for again under the same name.
func (p *pass) keepTicks() {
	if p.keeper == nil {
		return
	}
	open := map[string]*tickRun{}
	for _, run := range p.ticks {
		open[run.uid] = run
		p.keepRun(run)
	}
	for uid, e := range p.mem.ticks {
		mine := p.r.opts.Election.Deciding() && (e.epoch == 0 || e.epoch == p.r.opts.Election.Epoch())
		run := open[uid]
		if run == nil || e.keeper != p.terms.backend || e.id.Key != run.key || !mine && !started(run.snap.Note) {
			p.dropTick(uid)
		}
	}
	for uid := range p.mem.unseen {
		if open[string(uid)] == nil {
			delete(p.mem.unseen, uid)
		}
	}
}

// started reports whether what is noted has to be kept alive in the store.
func started(n plan.TickNote) bool {
	return n.Token != "" && (n.Outcome == plan.Begun || n.Outcome == plan.Halting)
}

func (p *pass) keepRun(run *tickRun) {
	n := run.snap.Note
	if !started(n) {
		return
	}
	id := p.tickID(run)
	if _, ok := p.keeper.State(id); !ok {
		p.keeper.Adopt(lock.Grant{
			Key: run.key, Owner: id.Owner, Token: lock.Token(n.Token), FencingToken: lock.FencingToken(n.FencingToken),
			TTL: p.terms.timing.TTL, Stage: lock.StageStarted, Ordered: run.snap.Policy != plan.Allow,
		}, p.terms.keeperTerms())
	}
	p.mem.ticks[run.uid] = tickEntry{id: id, keeper: p.terms.backend}
	p.r.index.set(id, p.name)
}

func (p *pass) tickID(run *tickRun) keeper.ID {
	return keeper.ID{Key: run.key, Owner: p.tickOwner(run)}
}

// dropTick forgets an entry and leaves the store alone.
func (p *pass) dropTick(uid string) {
	if e, ok := p.mem.ticks[uid]; ok {
		p.forget(e.keeper, e.id)
		delete(p.mem.ticks, uid)
	}
}

// tickStore translates what the keeper knows about a run.
func (p *pass) tickStore(run *tickRun) plan.TickStore {
	e, ok := p.mem.ticks[run.uid]
	if !ok || p.keeper == nil {
		return plan.TickStore{}
	}
	state, ok := p.keeper.State(e.id)
	if !ok {
		return plan.TickStore{}
	}
	g := state.Acquired.Grant
	st := plan.TickStore{
		Phase: phaseOf(state.Phase), Stage: plan.Stage(state.Stage), Owner: string(e.id.Owner), Token: string(g.Token),
		FencingToken: int64(g.FencingToken), ValidUntil: g.ValidUntil, Stamping: plan.Stage(state.Stamping),
		Answered: state.ErrSince.IsZero() && (state.Phase != keeper.PhaseWaiting || state.Err != nil),
		Seen:     p.seen(state.Seen), SeenStage: plan.Stage(state.Seen.Stage), Newest: state.Seen.Newest,
		TooOld: tooOld(state.Err, state.StampErr),
	}
	if wait := state.Acquired.StartAfter; wait > 0 {
		st.NotBefore = state.GrantedAt.Add(wait)
	}
	return st
}

// tooOld is why the store lets nobody run a tick, if one of the errors says so.
func tooOld(errs ...error) plan.Reason {
	for _, err := range errs {
		var old *lock.TooOldError
		switch {
		case !errors.As(err, &old) || errors.Is(err, lock.ErrUnknown):
		case old.Why == lock.TooOldAge:
			return plan.TickTooOld
		default:
			return plan.TickSuperseded
		}
	}
	return ""
}

// decideTicks takes the next step of every run, and tells the plain lock which of their Jobs may have it.
// Those that run without it are none of its candidates.
func (p *pass) decideTicks() {
	if len(p.ticks) == 0 {
		return
	}
	p.candidates = slices.DeleteFunc(p.candidates, func(c plan.Candidate) bool {
		return slices.ContainsFunc(p.ticks, func(run *tickRun) bool { return run.uid == c.UID && run.snap.Policy == plan.Allow })
	})
	base := p.snapshot()
	for _, run := range p.ticks {
		s := &run.snap
		s.Lock, s.Self, s.Store = base.Lock, base.Self, p.tickStore(run)
		if e := p.mem.ticks[run.uid]; s.Store.Phase == plan.Asking && s.Self.Deciding && e.retry != s.Retries() {
			p.claim(run)
		}
		s.Tenure = p.tenureOf(base, run)
		s.Sighted = !p.mem.unseen[types.UID(run.uid)] || p.sighted(s.Job)
		if s.Sighted {
			delete(p.mem.unseen, types.UID(run.uid))
		}
		s.Awaited = s.Tenure.Holding && base.Store.Awaited
		run.dec = plan.DecideTick(p.now, *s)
		p.applyTick(run)
	}
}

func (p *pass) applyTick(run *tickRun) {
	i := p.indexOf(run.uid)
	if i < 0 || p.lock == nil {
		return
	}
	c := &p.candidates[i]
	c.TickPending, c.TickWithdrawn, c.TickReplaced = run.dec.Pending, run.dec.Withdrawn, run.dec.Replaced
	c.TickUnsaid = run.dec.Unsaid
	if run.snap.Policy == plan.Replace && run.cron != nil {
		c.Group, c.Revision = string(run.cron.UID), run.snap.Minute
	}
}

// tenureOf tells where the plain lock stands with a run's Job.
func (p *pass) tenureOf(base plan.Snapshot, run *tickRun) plan.Tenure {
	if p.isHolder(types.UID(run.uid)) {
		return plan.Tenure{
			Holding: true, Cleared: base.Cleared(p.now), Stopped: p.status.State == plan.Releasing, Ending: p.status.Ending,
		}
	}
	if p.lock == nil {
		return plan.Tenure{}
	}
	for _, h := range p.lock.Status.History {
		if h.Holder == run.snap.Job.Name && h.FencingToken == run.snap.Job.RecordToken {
			return plan.Tenure{Ending: plan.Reason(h.Reason)}
		}
	}
	return plan.Tenure{}
}

// sighted reports whether a process of the Job ran, as far as its pods tell, those that are gone included.
// A pod of which nobody saw the end may have.
func (p *pass) sighted(job plan.Candidate) bool {
	h := &house{kind: plan.KindJob, uid: types.UID(job.UID)}
	for _, pod := range p.r.graves.of(h.owns) {
		if ranOnce(pod) {
			return true
		}
	}
	for _, m := range job.Members {
		if pod := p.pods[m.UID]; pod != nil && ranOnce(pod) || pod == nil && m.Body.Bound && !m.Body.Final {
			return true
		}
	}
	return false
}
