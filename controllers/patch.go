package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

const (
	// writeTimeout bounds a write that starts or marks a holder.
	writeTimeout = 10 * time.Second
	// deletionCost keeps the leader when its workload is scaled down.
	deletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// podPatch is a merge patch of a pod that the API server refuses if the pod is not the one, or not
// in the version, that the decision was based on.
type podPatch struct {
	Metadata podPatchMeta    `json:"metadata"`
	Spec     *map[string]any `json:"spec,omitempty"`
}

type podPatchMeta struct {
	UID             types.UID      `json:"uid"`
	ResourceVersion string         `json:"resourceVersion"`
	Labels          map[string]any `json:"labels,omitempty"`
	Annotations     map[string]any `json:"annotations,omitempty"`
}

// patchTarget writes on the pod that an action is aimed at. A start must reach the API server
// while the grant is good: its context ends when the grant is due to be fenced.
func (p *pass) patchTarget(ctx context.Context, snap plan.Snapshot, a plan.Action) error {
	pod, job := p.podOf(a), p.jobs[a.Target.UID]
	if a.Member.UID != "" {
		job = nil
	}
	if pod == nil && job == nil {
		return nil
	}
	deadline := p.now.Add(writeTimeout)
	if a.Kind == plan.Start {
		deadline = earliest(deadline, snap.Store.ValidUntil.Add(-p.terms.lock.FenceGrace-p.terms.lock.Margin))
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if ctx.Err() != nil || !p.r.opts.Election.Deciding() {
		p.again = atOnce // what kept this from being written decides what comes next
		return nil
	}
	p.noteStart(a)
	if job != nil {
		return p.patchJob(ctx, job, snap.Status, a)
	}
	body, err := json.Marshal(p.patchFor(pod, snap.Status, a))
	if err != nil {
		return fmt.Errorf("%s pod %s: %w", a.Kind, pod.Name, err)
	}
	if err := p.r.opts.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("%s pod %s: %w", a.Kind, pod.Name, err)
	}
	return nil
}

// podOf is the pod that an action is aimed at: the target itself or one of its pods; nil if it is none.
func (p *pass) podOf(a plan.Action) *corev1.Pod {
	if a.Member.UID != "" {
		return p.pods[a.Member.UID]
	}
	return p.pods[a.Target.UID]
}

func (p *pass) patchFor(pod *corev1.Pod, st plan.Status, a plan.Action) podPatch {
	patch := podPatch{Metadata: podPatchMeta{UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	fence := strconv.FormatInt(st.FencingToken, 10)
	leader := a.Target.Mode == plan.Leader
	switch a.Kind {
	case plan.Start:
		patch.Metadata.Annotations = p.record(st)
		if leader {
			patch.Metadata.Labels = map[string]any{lockv1alpha1.LabelRole: lockv1alpha1.RoleLeader}
			patch.Metadata.Annotations[deletionCost] = "1000"
		} else {
			patch.Spec = &map[string]any{"schedulingGates": gatesWithout(pod, lockv1alpha1.GateLock)}
		}
	case plan.Record:
		patch.Metadata.Annotations = p.record(st)
	case plan.Unlabel:
		patch.Metadata.Labels = map[string]any{lockv1alpha1.LabelRole: nil}
		patch.Metadata.Annotations = map[string]any{lockv1alpha1.AnnotationEnded: fence, deletionCost: nil}
		if st.Holder.UID != a.Target.UID {
			delete(patch.Metadata.Annotations, lockv1alpha1.AnnotationEnded)
		}
	case plan.Spoil:
		patch.Metadata.Annotations = map[string]any{lockv1alpha1.AnnotationEnded: fence}
	}
	return patch
}

// record is what a holder bears: who it is to the store, under which key, with which fencing token.
func (p *pass) record(st plan.Status) map[string]any {
	return map[string]any{
		lockv1alpha1.AnnotationKey:            p.terms.key.Encoded(),
		lockv1alpha1.AnnotationHolderIdentity: st.Holder.Owner,
		lockv1alpha1.AnnotationFencingToken:   strconv.FormatInt(st.FencingToken, 10),
	}
}

// stopTarget asks the kubelet to end a pod. It never forces a deletion and never evicts.
func (p *pass) stopTarget(ctx context.Context, a plan.Action) error {
	pod := p.podOf(a)
	if pod == nil || !p.r.opts.Election.Deciding() {
		return nil
	}
	grace := max(int64(a.Grace/time.Second), 1)
	err := p.r.opts.Client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(grace),
		client.Preconditions{UID: ptr.To(pod.UID), ResourceVersion: ptr.To(pod.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("stop pod %s: %w", pod.Name, err)
	}
	return nil
}

func gatesWithout(pod *corev1.Pod, name string) []corev1.PodSchedulingGate {
	out := []corev1.PodSchedulingGate{}
	for _, g := range pod.Spec.SchedulingGates {
		if g.Name != name {
			out = append(out, g)
		}
	}
	return out
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
