package controllers

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/controllers/plan"
)

// readStrays looks for pods of the holder's workload that run without a mark, from before it was
// annotated, or under another lock, from before it named this one. A cache may lag, and shows nothing that is
// unmarked, so they are read from the API server, and only where it matters: when a gate is about to be
// lifted, or a label set. The first version of a workload cannot have any before it.
func (p *pass) readStrays(ctx context.Context) error {
	i := p.indexOf(p.status.Holder.UID)
	if !p.ours() || i < 0 || p.status.State != plan.Held || !p.status.StartedAt.IsZero() {
		return nil
	}
	h, from := p.candidates[i], p.lineages[p.status.Holder.UID]
	if h.Composite() || h.Active() || !h.Body.Exists || from.uid == "" {
		return nil
	}
	selector, only, err := p.selectorOf(ctx, from, p.pods[h.UID])
	if err != nil || selector == nil || only && len(p.kin) == 0 {
		return err
	}
	var list corev1.PodList
	err = p.r.opts.APIReader.List(ctx, &list, client.InNamespace(p.name.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return fmt.Errorf("list the pods of %s %s: %w", from.kind, from.name, err)
	}
	p.kin = slices.DeleteFunc(p.kin, func(k plan.Kin) bool { return k.Group == h.Group })
	for i := range list.Items {
		if err := p.addStray(ctx, &list.Items[i], h, from); err != nil {
			return err
		}
	}
	return p.addVanished(ctx, list.Items, from)
}

// addStray adds a pod of the holder's workload that does not want this lock: as kin if it is marked, and as a
// candidate that is in the way if it works. Among leaders, what is unmarked is left to the rollout.
func (p *pass) addStray(ctx context.Context, pod *corev1.Pod, h plan.Candidate, holders lineage) error {
	marked := knownMark(pod)
	if marked && slices.Contains(lockNames(pod), p.name.Name) || !marked && (gated(pod) || h.Mode == plan.Leader) {
		return nil
	}
	from, err := p.r.lineageOf(ctx, pod)
	if err != nil || from.uid != holders.uid {
		return err
	}
	if marked {
		own, err := p.ownState(ctx, pod)
		if err != nil {
			return err
		}
		p.addKin(pod, from, own)
	}
	if marked && !works(pod) {
		return nil
	}
	p.lineages[string(pod.UID)] = from
	c := p.candidate(pod, marked)
	if marked {
		c.Record, c.RecordedToken = "", "" // they are about its own lock
	}
	c.Stray, c.Replaceable = true, from.kind == plan.KindDeployment && from.revision < holders.revision && c.Mode != plan.Leader
	p.pods[c.UID] = pod
	p.candidates = append(p.candidates, c)
	return nil
}

// selectorOf is how a workload selects its pods, nil if it is gone, and whether all pods it ever had are of the
// one version that a pod is of.
func (p *pass) selectorOf(ctx context.Context, of lineage, pod *corev1.Pod) (labels.Selector, bool, error) {
	key := client.ObjectKey{Namespace: p.name.Namespace, Name: of.name}
	var selector *metav1.LabelSelector
	var uid types.UID
	var err error
	only := of.revision == 1
	if of.kind == plan.KindDeployment {
		var d appsv1.Deployment
		err = p.r.opts.APIReader.Get(ctx, key, &d)
		selector, uid = d.Spec.Selector, d.UID
		only = only && d.Annotations[deploymentRevision] == "1" && d.Status.ObservedGeneration == d.Generation
	} else {
		var s appsv1.StatefulSet
		err = p.r.opts.APIReader.Get(ctx, key, &s)
		selector, uid = s.Spec.Selector, s.UID
		only = only && s.Status.UpdateRevision == pod.Labels[appsv1.ControllerRevisionHashLabelKey] && s.Status.ObservedGeneration == s.Generation
	}
	if apierrors.IsNotFound(err) || err == nil && uid != of.uid {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s %s: %w", of.kind, key, err)
	}
	out, err := metav1.LabelSelectorAsSelector(selector)
	return out, only, err
}

// retire scales the ReplicaSet of such a pod to zero. The deployment controller leaves it so: it
// makes pods of its newest version only.
func (p *pass) retire(ctx context.Context, a plan.Action) error {
	owner := metav1.GetControllerOf(p.pods[a.Target.UID])
	if owner == nil || !p.r.opts.Election.Deciding() {
		return nil
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.Target.Namespace, Name: owner.Name}}
	body := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"replicas":0}}`, owner.UID)
	if err := p.r.opts.Client.SubResource("scale").Patch(ctx, rs, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("scale ReplicaSet %s to 0: %w", owner.Name, err)
	}
	return nil
}
