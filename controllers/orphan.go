package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"

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
	p.status.State = plan.Idle
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
		p.again = atOnce
		p.told(ctx, before, dec)
	}
	p.lockMissed(dec)
}

// noun is what people call a candidate.
func noun(c plan.Candidate) string {
	if c.Kind == plan.KindPod {
		return "pod"
	}
	return c.Kind
}

// lockMissed tells the pods that wait for a lock which does not exist, since there is no object whose
// status could.
func (p *pass) lockMissed(dec plan.Decision) {
	if dec.Status.Ours(p.r.opts.Cluster) {
		return
	}
	for _, c := range p.candidates {
		if o := p.object(c.UID); o != nil && c.Eligible(p.now) {
			p.r.opts.Recorder.Eventf(o, nil, corev1.EventTypeWarning, "LockNotFound", "Wait",
				"there is no DistributedLock %q in this namespace: conch starts nothing for this %s until there is one", p.name.Name, noun(c))
		}
	}
}
