package controllers

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
)

// setConditions sets every condition, every time.
func (p *pass) setConditions(s *lockv1alpha1.DistributedLockStatus, snap plan.Snapshot, dec plan.Decision) {
	for _, c := range []metav1.Condition{
		p.readyCondition(snap, dec), p.heldCondition(dec), p.backendCondition(), p.fencedCondition(dec), p.identityCondition(snap),
	} {
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

// heldCondition is True only where this cluster holds.
func (p *pass) heldCondition(dec plan.Decision) metav1.Condition {
	st, gen := dec.Status, p.lock.Generation
	switch st.State {
	case plan.Held:
		return condition(lockv1alpha1.ConditionHeld, true, lockv1alpha1.ReasonAcquired,
			fmt.Sprintf("%s holds the lock with fencing token %d", st.Holder.Name, st.FencingToken), gen)
	case plan.Settling:
		return condition(lockv1alpha1.ConditionHeld, false, lockv1alpha1.ReasonSettling,
			fmt.Sprintf("acquired for %s; it starts once the holder before has had its time to stop", st.Holder.Name), gen)
	case plan.Fencing, plan.Releasing:
		return condition(lockv1alpha1.ConditionHeld, false, string(st.Ending), sentence(dec), gen)
	}
	return condition(lockv1alpha1.ConditionHeld, false, string(dec.Reason), dec.Message, gen)
}

func sentence(dec plan.Decision) string {
	if dec.Message != "" {
		return dec.Message
	}
	return string(dec.Reason)
}

// readyCondition sums up whether the lock does what it should, whoever holds it.
func (p *pass) readyCondition(snap plan.Snapshot, dec plan.Decision) metav1.Condition {
	gen := p.lock.Generation
	switch {
	case p.terms.refusal != "":
		return condition(lockv1alpha1.ConditionReady, false, p.terms.refusal, p.terms.lock.Refused, gen)
	case snap.Self.IdentityConflict:
		return condition(lockv1alpha1.ConditionReady, false, lockv1alpha1.ReasonClusterIdentityConflict, "another cluster uses this cluster's identity", gen)
	case !snap.Store.Unanswered.IsZero():
		c := p.backendCondition()
		return condition(lockv1alpha1.ConditionReady, false, c.Reason, c.Message, gen)
	case dec.Reason == plan.CannotTell, dec.Reason == plan.Unreachable, dec.Reason == plan.OthersActive, dec.Reason == plan.HeldByForeign:
		return condition(lockv1alpha1.ConditionReady, false, string(dec.Reason), dec.Message, gen)
	case p.terms.timing.TTL < shortTTL:
		return condition(lockv1alpha1.ConditionReady, true, lockv1alpha1.ReasonTTLTooShort,
			fmt.Sprintf("works, but a ttl of %s leaves little time for a slow node or network: write 15s or more", p.terms.timing.TTL), gen)
	}
	return condition(lockv1alpha1.ConditionReady, true, lockv1alpha1.ReasonOK, "the lock is managed", gen)
}

// backendCondition tells whether the store of this lock answers.
func (p *pass) backendCondition() metav1.Condition {
	gen := p.lock.Generation
	if p.keeper == nil {
		return condition(lockv1alpha1.ConditionBackendReady, false, lockv1alpha1.ReasonUnknownBackend, p.terms.lock.Refused, gen)
	}
	err := p.keeper.Health().Err
	if reason, msg, failing := unknown(err); failing {
		return condition(lockv1alpha1.ConditionBackendReady, false, string(reason), msg, gen)
	}
	if id, _, ok := p.entry(); ok {
		if state, ok := p.keeper.State(id); ok && errors.Is(state.Err, lock.ErrUnknown) {
			return condition(lockv1alpha1.ConditionBackendReady, false, string(lock.ReasonOf(state.Err)), state.Err.Error(), gen)
		}
	}
	return condition(lockv1alpha1.ConditionBackendReady, true, lockv1alpha1.ReasonAnswering, "the backend answers", gen)
}

// fencedCondition tells how the end of the newest tenure stands.
func (p *pass) fencedCondition(dec plan.Decision) metav1.Condition {
	st, gen := dec.Status, p.lock.Generation
	switch {
	case st.State == plan.Releasing && st.Unclean:
		return condition(lockv1alpha1.ConditionFenced, false, lockv1alpha1.ReasonUnconfirmed, "the lock is given back although the holder's end is not confirmed", gen)
	case st.State == plan.Releasing:
		return condition(lockv1alpha1.ConditionFenced, true, lockv1alpha1.ReasonConfirmed, "the former holder has stopped", gen)
	case st.State == plan.Fencing && dec.Reason == plan.Unreachable:
		return condition(lockv1alpha1.ConditionFenced, false, lockv1alpha1.ReasonHolderUnreachable,
			fmt.Sprintf("%s (node %s): %s", st.Holder.Name, orUnknown(st.Holder.Node), dec.Message), gen)
	case st.State == plan.Fencing:
		return condition(lockv1alpha1.ConditionFenced, false, lockv1alpha1.ReasonInProgress,
			fmt.Sprintf("%s on node %s is being stopped", st.Holder.Name, orUnknown(st.Holder.Node)), gen)
	}
	return condition(lockv1alpha1.ConditionFenced, true, lockv1alpha1.ReasonNotNeeded, "nobody has to be stopped", gen)
}

func orUnknown(node string) string {
	if node == "" {
		return "(not bound)"
	}
	return node
}

func (p *pass) identityCondition(snap plan.Snapshot) metav1.Condition {
	if snap.Self.IdentityConflict {
		return condition(lockv1alpha1.ConditionClusterIdentityConflict, true, lockv1alpha1.ReasonClusterIdentityConflict,
			"another cluster uses the identity "+p.r.opts.Cluster+": give each its own clusterId", p.lock.Generation)
	}
	return condition(lockv1alpha1.ConditionClusterIdentityConflict, false, lockv1alpha1.ReasonUnique, "no other cluster uses this identity", p.lock.Generation)
}
