package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// report writes the status of a pass, if this replica decides and anything changed, and then tells
// of it. The patch carries UID and resourceVersion, so a status that another decider wrote in the
// meantime is never overwritten.
func (p *pass) report(ctx context.Context, snap plan.Snapshot, dec plan.Decision) error {
	if dec.Reason == plan.NotDeciding || !p.r.opts.Election.Deciding() {
		return nil
	}
	p.advise()
	if p.lock == nil {
		p.reportOrphan(ctx, dec)
		return nil
	}
	next := p.lock.DeepCopy()
	p.fillStatus(&next.Status, snap, dec)
	p.fillTicks(&next.Status)
	if equality.Semantic.DeepEqual(p.lock.Status, next.Status) {
		return nil
	}
	if err := p.r.opts.Client.Status().Patch(ctx, next, p.statusPatch()); err != nil {
		return fmt.Errorf("write status of lock %s: %w", p.name, err)
	}
	p.closed(snap.Status, dec.Status)
	p.told(ctx, snap.Status, dec)
	p.tellTicks(ctx)
	return nil
}

// statusPatch names the version that the decision was based on, and the object's UID.
func (p *pass) statusPatch() client.Patch {
	base := p.lock.DeepCopy()
	return uidPatch{client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), base.UID}
}

// uidPatch adds the UID to a merge patch, so that it never reaches another object of that name.
type uidPatch struct {
	client.Patch
	uid types.UID
}

// Data is the wrapped patch with the UID in its metadata.
func (u uidPatch) Data(o client.Object) ([]byte, error) {
	data, err := u.Patch.Data(o)
	if err != nil {
		return nil, err
	}
	return withUID(data, u.uid)
}

// closed cleans up after a tenure that has come to its end: its entry, and the back-off of a
// candidate that did not start in time.
func (p *pass) closed(before, after plan.Status) {
	gaveUp := standsBack(after.Ending)
	if before.State != plan.Fencing && after.State == plan.Fencing && gaveUp {
		if i := p.indexOf(after.Holder.UID); i >= 0 {
			kin := kindred(p.candidates[i])
			p.mem.backOff[kin] = p.mem.backOff[kin].next(p.now, after.Ending == plan.StartDeadline)
		}
	}
	if before.Ours(p.r.opts.Cluster) && !sameTenure(before, after) && before.Holder.UID != after.Holder.UID {
		p.mem.bury(types.UID(before.Holder.UID), p.now)
	}
	if before.StartedAt.IsZero() || !after.StartedAt.IsZero() || !before.Ours(p.r.opts.Cluster) {
		return
	}
	if i := p.indexOf(before.Holder.UID); i >= 0 && !standsBack(before.Ending) {
		delete(p.mem.backOff, kindred(p.candidates[i]))
	}
}

// standsBack reports whether a revision that ended like this waits before it contends again.
func standsBack(why plan.Reason) bool {
	return why == plan.StartDeadline || why == plan.GateBypassed || why == plan.LockChanged
}

// told logs, counts and announces a transition, once it is written.
func (p *pass) told(ctx context.Context, before plan.Status, dec plan.Decision) {
	after := dec.Status
	p.r.opts.Metrics.record(p.name, before, after, p.r.opts.Cluster)
	if before.State != after.State || before.Token != after.Token {
		st := after
		if !after.Ours(p.r.opts.Cluster) && before.Ours(p.r.opts.Cluster) {
			st = before
		}
		ctrl.LoggerFrom(ctx).Info("Lock changed", "key", p.terms.key.String(), "from", string(before.State), "to", string(after.State),
			"reason", string(dec.Reason), "holder", st.Holder.Name, "token", st.Token, "fencingToken", st.FencingToken)
	}
	p.status = after
	if p.status.Holder.UID == "" {
		p.status.Holder = before.Holder
	}
	p.send(notesOf(before, after, dec, p.r.opts.Cluster, p.waited(after.Holder.UID)))
}

// fillStatus translates a decision into the object's status.
func (p *pass) fillStatus(s *lockv1alpha1.DistributedLockStatus, snap plan.Snapshot, dec plan.Decision) {
	st, cluster := dec.Status, p.r.opts.Cluster
	if before := snap.Status; before.Ours(cluster) && !sameTenure(before, st) {
		s.History = append([]lockv1alpha1.Tenure{p.tenure(before, st)}, s.History...)
		s.History = s.History[:min(len(s.History), lockv1alpha1.MaxHistory)]
	}
	if st.Ours(cluster) && !(snap.Status.Ours(cluster) && sameTenure(snap.Status, st)) {
		s.Tenures++
	}
	s.State = lockv1alpha1.State(st.State)
	s.Holder = p.holder(st)
	s.Token, s.FencingToken, s.HighestSeen = st.Token, st.FencingToken, st.HighestSeen
	s.AcquiredAt, s.NotBefore, s.StartedAt = microTime(st.AcquiredAt), microTime(st.NotBefore), microTime(st.StartedAt)
	s.Waiters = p.waiters(st, dec)
	s.Effective = p.effective()
	s.ObservedGeneration = p.lock.Generation
	p.setConditions(s, snap, dec)
}

func sameTenure(a, b plan.Status) bool {
	return a.Holder.Owner == b.Holder.Owner && a.FencingToken == b.FencingToken
}

func (p *pass) holder(st plan.Status) *lockv1alpha1.Holder {
	h := st.Holder
	if h.Owner == "" {
		return nil
	}
	return &lockv1alpha1.Holder{
		Cluster: h.Cluster, Kind: h.Kind, Name: h.Name, UID: types.UID(h.UID), Identity: h.Owner,
		Node: h.Node, BootID: h.BootID, GracePeriodSeconds: int64(h.Grace.Seconds()),
	}
}

// waited is how long ago a candidate was created.
func (p *pass) waited(uid string) time.Duration {
	i := p.indexOf(uid)
	if i < 0 {
		return 0
	}
	return p.now.Sub(p.candidates[i].Created).Round(time.Second)
}
