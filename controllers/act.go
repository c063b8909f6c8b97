package controllers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// act carries out the one effect of a decision. Whether this replica still decides is asked once
// more, as late as possible.
func (p *pass) act(ctx context.Context, snap plan.Snapshot, dec plan.Decision) error {
	a := dec.Action
	if a.Kind == plan.NoAction {
		return nil
	}
	if !p.r.opts.Election.Deciding() {
		return nil
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Acting", "action", string(a.Kind), "target", a.Target.Name,
		"reason", string(dec.Reason), "key", p.terms.key.String(), "token", snap.Status.Token)
	switch a.Kind {
	case plan.Start, plan.Record, plan.Spoil, plan.Unlabel, plan.Suspend, plan.Reset:
		return p.patchTarget(ctx, snap, a)
	case plan.Stop:
		return p.stopTarget(ctx, a)
	case plan.Retire:
		return p.retire(ctx, a)
	default:
		return p.order(ctx, snap, a)
	}
}

// order gives the keeper an order; none of them waits for the store.
func (p *pass) order(ctx context.Context, snap plan.Snapshot, a plan.Action) error {
	if p.keeper == nil {
		return nil
	}
	switch a.Kind {
	case plan.Contend:
		return p.contend(a.Target)
	case plan.Continue:
		p.continueHold(snap)
	case plan.CallOff:
		p.callOff()
	case plan.Sweep:
		return p.sweep(ctx, snap.Store.Seen.Holder)
	case plan.Release:
		id := keeper.ID{Key: p.terms.key, Owner: lock.Owner(snap.Status.Holder.Owner)}
		p.keeper.Release(id, lock.Leave{Unclean: a.Unclean})
	case plan.Forget:
		if at := p.mem.attempt; at != nil {
			p.forget(at.keeper, at.id)
			p.mem.attempt = nil
		}
	}
	return nil
}

// contend begins an attempt under an owner that was never used before.
func (p *pass) contend(c plan.Candidate) error {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return fmt.Errorf("make a nonce: %w", err)
	}
	owner := ownerOf(p.r.opts.Cluster, c, hex.EncodeToString(nonce[:]))
	if err := owner.Validate(); err != nil {
		return fmt.Errorf("contend for %s: %w", p.terms.key, err)
	}
	id := keeper.ID{Key: p.terms.key, Owner: owner}
	p.ask(id, lock.Request{
		Key: id.Key, Owner: owner, TTL: p.terms.timing.TTL,
		Floor: floorOf(p.status), Settle: p.terms.settle(p.r.opts.Cluster),
	})
	p.mem.attempt.candidate = plan.Holder{
		Cluster: p.r.opts.Cluster, Namespace: c.Namespace, Kind: c.Kind, Name: c.Name, UID: c.UID,
		Owner: string(owner), Grace: c.Body.Grace,
	}
	return nil
}

// continueHold asks again for a key that vanished under its holder, as the same owner.
func (p *pass) continueHold(snap plan.Snapshot) {
	id := keeper.ID{Key: p.terms.key, Owner: lock.Owner(snap.Status.Holder.Owner)}
	p.keeper.Forget(id)
	p.ask(id, lock.Request{
		Key: id.Key, Owner: id.Owner, TTL: p.terms.timing.TTL,
		Floor: floorOf(p.status), Since: lock.FencingToken(snap.Status.FencingToken),
	})
	p.mem.attempt.continuing, p.mem.attempt.candidate = true, snap.Status.Holder
}

func (p *pass) ask(id keeper.ID, req lock.Request) {
	p.mem.attempt = &attempt{
		id: id, keeper: p.terms.backend, since: p.now, epoch: p.r.opts.Election.Epoch(),
		request: req, terms: p.terms.keeperTerms(),
	}
	p.r.index.set(id, p.name)
	p.keeper.Acquire(keeper.Want{Request: req, Terms: p.terms.keeperTerms()})
}

// callOff ends the attempt under way and clears it out of the store.
func (p *pass) callOff() {
	if a := p.mem.attempt; a != nil {
		p.r.opts.Keepers[a.keeper].AbandonFor(a.id, p.terms.timing.TTL)
	}
}

// floorOf is the lowest fencing token that may be granted next.
func floorOf(st plan.Status) lock.FencingToken {
	if seen := max(st.HighestSeen, st.FencingToken); seen > 0 {
		return lock.FencingToken(seen + 1)
	}
	return 0
}
