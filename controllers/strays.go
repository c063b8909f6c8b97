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

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// readStrays looks for pods of the holder's workload that run without a mark, from before it was
// annotated, or under another lock, from before it named this one. This lock's index shows neither, so they
// are read from the API server, and only where it matters: when a gate is about to be lifted. The first
// version of a workload cannot have any before it.
func (p *pass) readStrays(ctx context.Context) error {
	i := p.indexOf(p.status.Holder.UID)
	if !p.ours() || i < 0 || p.status.State != plan.Held || !p.status.StartedAt.IsZero() {
		return nil
	}
	h, from := p.candidates[i], p.lineages[p.status.Holder.UID]
	if h.Mode == plan.Leader || !h.Gated || !h.Body.Exists || from.uid == "" || from.revision <= 1 {
		return nil
	}
	selector, err := p.selectorOf(ctx, from)
	if err != nil || selector == nil {
		return err
	}
	var list corev1.PodList
	err = p.r.opts.APIReader.List(ctx, &list, client.InNamespace(p.name.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return fmt.Errorf("list the pods of %s %s: %w", from.kind, from.name, err)
	}
	for i := range list.Items {
		if err := p.addStray(ctx, &list.Items[i], from); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) addStray(ctx context.Context, pod *corev1.Pod, holders lineage) error {
	marked := pod.Labels[lockv1alpha1.LabelSingleton] != ""
	if gated(pod) || marked && slices.Contains(lockNames(pod), p.name.Name) {
		return nil
	}
	from, err := p.r.lineageOf(ctx, pod)
	if err != nil || from.uid != holders.uid {
		return err
	}
	p.lineages[string(pod.UID)] = from
	c := p.candidate(pod, false)
	if marked {
		c.Record, c.RecordToken, c.RecordedToken = "", 0, "" // they are about its own lock
	}
	c.Stray, c.Replaceable = true, from.kind == "Deployment" && from.revision < holders.revision
	p.pods[c.UID] = pod
	p.candidates = append(p.candidates, c)
	return nil
}

// selectorOf is how a workload selects its pods, nil if it is gone.
func (p *pass) selectorOf(ctx context.Context, of lineage) (labels.Selector, error) {
	key := client.ObjectKey{Namespace: p.name.Namespace, Name: of.name}
	var selector *metav1.LabelSelector
	var uid types.UID
	var err error
	if of.kind == "Deployment" {
		var d appsv1.Deployment
		err = p.r.opts.APIReader.Get(ctx, key, &d)
		selector, uid = d.Spec.Selector, d.UID
	} else {
		var s appsv1.StatefulSet
		err = p.r.opts.APIReader.Get(ctx, key, &s)
		selector, uid = s.Spec.Selector, s.UID
	}
	if apierrors.IsNotFound(err) || err == nil && uid != of.uid {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", of.kind, key, err)
	}
	return metav1.LabelSelectorAsSelector(selector)
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
