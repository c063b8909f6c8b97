package controllers

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// addMembers adds the pods of a Job or workload. Where somebody's death hangs on them, they are read
// from the API server, with those that vanished: a cache may lag, and shows only what is marked.
func (p *pass) addMembers(ctx context.Context, c *plan.Candidate) error {
	h := p.houses[types.UID(c.UID)]
	if h == nil {
		h = &house{kind: c.Kind, uid: types.UID(c.UID)}
	}
	for _, pod := range h.pods {
		p.addMember(c, pod, true)
	}
	if !p.mustList(c) || !p.r.opts.Election.Deciding() {
		return nil
	}
	listed, err := p.listMembers(ctx, h)
	if err != nil {
		return err
	}
	c.Members, c.Listed = nil, true
	there := map[types.UID]bool{}
	for _, pod := range listed {
		there[pod.UID] = true
		p.addMember(c, pod, true)
	}
	for _, pod := range append(p.r.graves.of(h.owns), h.pods...) {
		if !there[pod.UID] {
			there[pod.UID] = true
			p.addMember(c, pod, false)
		}
	}
	return nil
}

// mustList reports whether anything hangs on the death of the candidate's pods. A holder is listed anew
// in every pass once the status says Fencing; a candidate that works without the lock, at any time.
func (p *pass) mustList(c *plan.Candidate) bool {
	if p.isHolder(types.UID(c.UID)) {
		return p.status.State == plan.Fencing
	}
	halting := p.terms.lock.Gone || p.notes[c.UID].note.Outcome == plan.Halting
	return c.Active() || c.Kind == plan.KindJob && (c.Busy || halting)
}

// listMembers asks the API server itself, without a resourceVersion.
func (p *pass) listMembers(ctx context.Context, h *house) ([]*corev1.Pod, error) {
	by := client.MatchingLabels{lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonActivePassive}
	if h.kind == plan.KindJob {
		by = client.MatchingLabels{batchv1.ControllerUidLabel: string(h.uid)}
	}
	var list corev1.PodList
	if err := p.r.opts.APIReader.List(ctx, &list, client.InNamespace(p.name.Namespace), by); err != nil {
		return nil, fmt.Errorf("list the pods of %s %s: %w", h.kind, h.uid, err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		mine := h.owns(pod)
		if !mine && h.kind != plan.KindJob {
			from, err := p.r.lineageOf(ctx, pod)
			if err != nil {
				return nil, err
			}
			mine = from.uid == h.uid
		}
		if mine {
			out = append(out, pod)
		}
	}
	return out, nil
}

// owns reports whether a pod is a member by its controller or by its record alone.
func (h *house) owns(pod *corev1.Pod) bool {
	if job := jobOf(pod); job != nil {
		return job.UID == h.uid
	}
	if h.kind == plan.KindJob && pod.Labels[batchv1.ControllerUidLabel] == string(h.uid) {
		return true
	}
	o, ok := recordedOwner(pod)
	return ok && o.UID == string(h.uid)
}

// addMember translates a pod. One that does not exist is known by its last state: final if the watch
// delivered that with the deletion, which may yet come.
func (p *pass) addMember(c *plan.Candidate, pod *corev1.Pod, exists bool) {
	m := plan.Member{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Gated: gated(pod), NodeName: pod.Spec.NodeName,
		Record:      pod.Annotations[lockv1alpha1.AnnotationHolderIdentity],
		RecordToken: fencingToken(pod.Annotations[lockv1alpha1.AnnotationFencingToken]),
		Ended:       fencingToken(pod.Annotations[lockv1alpha1.AnnotationEnded]),
		Body:        bodyOf(pod, exists),
	}
	m.Body.VanishedAt = firstSeen(p.mem.vanished, pod.UID, !exists, p.now)
	if !exists {
		m.Body.Final = p.r.graves.find(pod.UID) != nil
	} else {
		p.pods[m.UID] = pod
	}
	c.Members = append(c.Members, m)
}

// anyReady reports whether a pod runs steadily.
func (p *pass) anyReady(members []plan.Member) bool {
	found := false
	for _, m := range members {
		pod := p.pods[m.UID]
		if pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		ready, _ := readiness(pod)
		at := steadyAt(pod)
		if ready && p.now.Before(at) {
			ready = false
			if p.steadyAt.IsZero() || at.Before(p.steadyAt) {
				p.steadyAt = at
			}
		}
		found = found || ready
	}
	return found
}

// anyUnfinished reports whether a pod may still do something, or has not shown its end.
func anyUnfinished(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if b := bodyOf(pod, true); !b.Terminal || !b.Stopped || b.Collected {
			return true
		}
	}
	return false
}
