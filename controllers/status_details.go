package controllers

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// waiters sums up who wants the lock and does not have it.
func (p *pass) waiters(st plan.Status, dec plan.Decision) *lockv1alpha1.Waiters {
	w := &lockv1alpha1.Waiters{}
	for _, c := range p.candidates {
		if c.UID == st.Holder.UID && st.Ours(p.r.opts.Cluster) || !c.Eligible(p.now) {
			continue
		}
		w.Count++
		if len(w.Names) < lockv1alpha1.MaxWaiterNames {
			w.Names = append(w.Names, c.Name)
		}
	}
	if w.Count == 0 {
		return nil
	}
	w.Reason = string(dec.Reason)
	if st.Ours(p.r.opts.Cluster) {
		w.Reason = lockv1alpha1.ReasonHeldHere
	}
	return w
}

// tenure is the history's line for a tenure that has ended.
func (p *pass) tenure(before, after plan.Status) lockv1alpha1.Tenure {
	why := string(before.Ending)
	if why == "" && after.FencingToken > before.FencingToken {
		why = string(plan.TenureBroken)
	}
	return lockv1alpha1.Tenure{
		Holder: before.Holder.Name, Cluster: before.Holder.Cluster, FencingToken: before.FencingToken,
		From: microTime(before.AcquiredAt), To: microTime(p.now), Reason: why,
	}
}

// effective shows the values that hold after defaults, for people; nothing reads them back.
func (p *pass) effective() *lockv1alpha1.Effective {
	t := p.terms
	onLoss := lockv1alpha1.BackendLossFence
	if t.lock.HoldOnLoss {
		onLoss = lockv1alpha1.BackendLossHold
	}
	e := &lockv1alpha1.Effective{
		Key: t.key.Encoded(), Scope: t.scope, Backend: t.backend, OnBackendLoss: onLoss,
		TTL: metav1.Duration{Duration: t.timing.TTL}, RenewInterval: metav1.Duration{Duration: t.timing.RenewInterval}, FenceGrace: metav1.Duration{Duration: t.timing.FenceGrace},
		Margin: metav1.Duration{Duration: t.timing.Margin}, TakeoverDelay: metav1.Duration{Duration: t.timing.TakeoverDelay}, StartDeadline: metav1.Duration{Duration: t.lock.StartDeadline},
	}
	if t.lock.MaxHold > 0 {
		e.MaxHold = &metav1.Duration{Duration: t.lock.MaxHold}
	}
	if t.key.Raw {
		e.Scope = lockv1alpha1.ScopeRaw
	}
	return e
}

// withUID adds a UID to the metadata of a JSON merge patch.
func withUID(patch []byte, uid types.UID) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(patch, &doc); err != nil {
		return nil, fmt.Errorf("read a patch: %w", err)
	}
	meta, ok := doc["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		doc["metadata"] = meta
	}
	meta["uid"] = uid
	return json.Marshal(doc)
}

func condition(t string, yes bool, reason, msg string, generation int64) metav1.Condition {
	c := metav1.Condition{Type: t, Status: metav1.ConditionFalse, Reason: reason, Message: msg, ObservedGeneration: generation}
	if yes {
		c.Status = metav1.ConditionTrue
	}
	return c
}
