package controllers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// keep makes the keeper renew what the status says this cluster holds. Every replica does so, the
// decider or not: a renewal can only keep a lock alive that its holder still has.
func (p *pass) keep(ctx context.Context) {
	p.dropAttempt(ctx)
	if p.keeper == nil {
		return
	}
	p.followSpec()
	p.tidy()
	if !p.ours() {
		p.dropKept()
		return
	}
	g := grantOf(p.terms.key, p.status, p.terms.timing.TTL)
	id := keeper.ID{Key: g.Key, Owner: g.Owner}
	if p.mem.kept != nil && p.mem.kept.id != id {
		p.dropKept()
	}
	if p.continuing(id) {
		return
	}
	if state, ok := p.keeper.State(id); !ok || p.outdated(state) {
		p.keeper.Forget(id)
		p.keeper.Adopt(g, p.terms.keeperTerms())
	}
	p.rememberKept(id)
	p.retime(id)
}

// outdated reports whether the keeper still has an earlier acquisition of the same owner, as a
// replica does that heard of the newer one only through the status.
func (p *pass) outdated(s keeper.State) bool {
	return int64(s.Acquired.Grant.FencingToken) < p.status.FencingToken && s.Phase != keeper.PhaseWaiting
}

// followSpec makes an attempt under way ask for what the spec says now.
func (p *pass) followSpec() {
	a, want := p.mem.attempt, p.terms.keeperTerms()
	if a == nil || a.terms == want {
		return
	}
	if s, ok := p.keeper.State(a.id); !ok || s.Phase != keeper.PhaseWaiting {
		return
	}
	a.terms, a.request.TTL, a.request.Settle = want, want.TTL, p.terms.settle(p.r.opts.Cluster)
	if a.continuing {
		a.request.Settle = lock.Settle{}
	}
	p.keeper.Acquire(keeper.Want{Request: a.request, Terms: want})
}

// rememberKept notes what is kept, and under which terms the store knows it: those of the attempt that
// it came from, which may not be the spec's any more.
func (p *pass) rememberKept(id keeper.ID) {
	since, terms := p.now, p.terms.keeperTerms()
	if a := p.mem.attempt; a != nil && a.id == id {
		since, terms, p.mem.attempt = a.since, a.terms, nil
	}
	if p.mem.kept == nil {
		p.mem.kept = &kept{id: id, keeper: p.terms.backend, since: since, terms: terms}
	}
	p.r.index.set(id, p.name)
}

// continuing reports whether the present holder's key is being asked for again; the entry is then
// an attempt, which keep must leave alone.
func (p *pass) continuing(id keeper.ID) bool {
	a := p.mem.attempt
	if a == nil || !a.continuing || a.id != id {
		return false
	}
	state, ok := p.keeper.State(id)
	return ok && state.Phase != keeper.PhaseHeld || ok && int64(state.Acquired.Grant.FencingToken) > p.status.FencingToken
}

// retime follows a changed ttl. Only the decider cuts down what the store has; the others stop
// asking for more, or they would undo it with their next renewal.
func (p *pass) retime(id keeper.ID) {
	want := p.terms.keeperTerms()
	if p.mem.kept.terms == want {
		return
	}
	shorten := want.TTL < p.mem.kept.terms.TTL && p.r.opts.Election.Deciding()
	p.mem.kept.terms = want
	p.keeper.Retime(id, want, shorten)
}

// dropKept stops renewing what the status no longer names. The store is left alone: what was
// released is gone, and what somebody else decided is theirs.
func (p *pass) dropKept() {
	if p.mem.kept == nil {
		return
	}
	p.forget(p.mem.kept.keeper, p.mem.kept.id)
	p.mem.kept = nil
}

// dropAttempt ends an attempt that this replica must not pursue: it decides no longer, the status
// names another holder, or the lock was made anew with another key. Only the decider clears it out of the store, because the next
// decider may have made something of it by now.
func (p *pass) dropAttempt(ctx context.Context) {
	a := p.mem.attempt
	if a == nil {
		return
	}
	same := a.id.Key == p.terms.key && a.keeper == p.terms.backend
	deciding := p.r.opts.Election.Deciding()
	switch {
	case same && p.ours() && p.status.Holder.Owner == string(a.id.Owner):
		return
	case a.epoch != p.r.opts.Election.Epoch():
		p.forget(a.keeper, a.id)
	case same && deciding && !p.ours():
		return
	case deciding:
		ctrl.LoggerFrom(ctx).V(1).Info("Calling off an attempt beside the holder", "key", a.id.Key.String(), "owner", string(a.id.Owner))
		p.abandon(a.keeper, a.id)
	default:
		p.forget(a.keeper, a.id)
	}
	p.mem.attempt = nil
}

// abandon clears an owner out of the store, now or later, and its entry with it.
func (p *pass) abandon(backend string, id keeper.ID) {
	if k := p.r.opts.Keepers[backend]; k != nil {
		k.AbandonFor(id, p.terms.timing.TTL)
		p.mem.leaving[id] = backend
		p.r.index.set(id, p.name)
	}
}

// tidy forgets the entries that have left the store.
func (p *pass) tidy() {
	for id, backend := range p.mem.leaving {
		if k := p.r.opts.Keepers[backend]; k != nil {
			if s, ok := k.State(id); ok && s.Phase == keeper.PhaseAbandoning {
				continue
			}
		}
		p.forget(backend, id)
		delete(p.mem.leaving, id)
	}
}

func (p *pass) forget(backend string, id keeper.ID) {
	if k := p.r.opts.Keepers[backend]; k != nil {
		k.Forget(id)
	}
	p.r.index.unset(id)
}
