package controllers

import (
	"context"

	"github.com/conch-dev/conch/controllers/plan"
)

// adoptOrphan finds the status of a lock whose object is gone: what the decider remembers, else the
// record that the holder itself bears. Replicas that do not decide go by the record alone, so that
// they keep renewing exactly as long as there is a holder.
func (p *pass) adoptOrphan() {
	deciding := p.r.opts.Election.Deciding()
	switch {
	case !deciding:
		p.mem.orphan, p.mem.last = plan.Status{}, plan.Status{}
	case p.mem.orphan.State != "":
		p.status = p.mem.orphan
		return
	case p.mem.last.Ours(p.r.opts.Cluster):
		p.status, p.mem.last = p.mem.last, plan.Status{}
		return
	}
	if st, found := plan.Recorded(p.now, p.snapshot()); found {
		p.status = st
	}
}

// reportOrphan remembers the status of a lock without object, and forgets it at the end.
func (p *pass) reportOrphan(ctx context.Context, dec plan.Decision) {
	before := p.status
	p.mem.orphan = plan.Status{}
	if dec.Status.Ours(p.r.opts.Cluster) {
		p.mem.orphan = dec.Status
	} else {
		p.r.opts.Metrics.forget(p.name)
	}
	if before.State != dec.Status.State {
		p.again = true
		p.told(ctx, before, dec)
	}
}
