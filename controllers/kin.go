package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
	"github.com/conch-dev/conch/controllers/plan"
)

// kinField indexes pods by their workload. Some of it may want one lock and some another, where the workload
// changed the lock that it names.
const kinField = "conch.dev/workload"

// workloadOf is the kind and name of a marked pod's workload, empty for a bare pod.
func workloadOf(o client.Object) []string {
	kind, name, ok := naming.Workload(plan.KindPod, o)
	if !ok || kind == plan.KindPod || o.GetLabels()[lockv1alpha1.LabelSingleton] == "" {
		return nil
	}
	return []string{kind + "/" + name}
}

// locksOfPod names the lock that a pod wants, and those that the rest of its workload wants.
func (r *Reconciler) locksOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	out := locksNamed(ctx, o)
	for _, workload := range workloadOf(o) {
		for _, other := range r.locksOfPods(ctx, func(*corev1.Pod) bool { return true },
			client.InNamespace(o.GetNamespace()), client.MatchingFields{kinField: workload}, client.UnsafeDisableDeepCopy) {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// readKin finds the pods of the candidates' workloads that want other locks, as the cache has them. That is
// enough to stand back, and to hand over; before something starts, they are read anew.
func (p *pass) readKin(ctx context.Context) error {
	var seen []string
	for _, pod := range p.pods {
		for _, workload := range workloadOf(pod) {
			if slices.Contains(seen, workload) {
				continue
			}
			seen = append(seen, workload)
			if err := p.readKinOf(ctx, workload); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) readKinOf(ctx context.Context, workload string) error {
	var list corev1.PodList
	if err := p.r.opts.Client.List(ctx, &list, client.InNamespace(p.name.Namespace),
		client.MatchingFields{kinField: workload}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the pods of %s: %w", workload, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if slices.Contains(lockNames(pod), p.name.Name) || !knownMark(pod) {
			continue
		}
		from, err := p.r.lineageOf(ctx, pod)
		if err != nil {
			return err
		}
		p.addKin(pod, from, plan.Idle)
	}
	return nil
}

// addKin adds a pod that is not done with, and says how its own lock stands for it.
func (p *pass) addKin(pod *corev1.Pod, from lineage, own plan.State) {
	b := bodyOf(pod, true)
	group, revision := from.group(pod)
	k := plan.Kin{Name: pod.Name, UID: string(pod.UID), Group: group, Revision: revision, Active: works(pod)}
	k.Holding, k.Settling = !k.Active && own == plan.Held, !k.Active && own == plan.Settling
	if k.Active && b.Stopped && (b.Deleting || b.Terminal) || !k.Active && (b.Deleting || b.Terminal) {
		return
	}
	p.kin = append(p.kin, k)
}

// works reports whether a pod does, or may do, what only a holder may.
func works(pod *corev1.Pod) bool {
	if modeOf(pod) == plan.Leader {
		return pod.Labels[lockv1alpha1.LabelRole] == lockv1alpha1.RoleLeader
	}
	return !gated(pod)
}

// ownState tells how the lock of a pod that waits stands for it: Held if that may start it at any moment, which
// is so until the pod itself says that this tenure is over; Settling; or Idle. The pod has to be read before.
func (p *pass) ownState(ctx context.Context, pod *corev1.Pod) (plan.State, error) {
	for _, name := range lockNames(pod) {
		var l lockv1alpha1.DistributedLock
		err := p.r.opts.APIReader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, &l)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read the lock of pod %s: %w", pod.Name, err)
		}
		st := readStatus(&l)
		if err != nil || st.Holder.UID != string(pod.UID) {
			continue
		}
		switch over := fencingToken(pod.Annotations[lockv1alpha1.AnnotationEnded]) >= st.FencingToken; {
		case st.State == plan.Settling:
			return plan.Settling, nil
		case !over && (st.State == plan.Held || st.State == plan.Fencing):
			return plan.Held, nil
		}
	}
	return plan.Idle, nil
}

// addVanished adds the holders of other locks whose pods were of this workload and are gone. Their locks keep
// them until they are known to be dead.
func (p *pass) addVanished(ctx context.Context, listed []corev1.Pod, of lineage) error {
	var list lockv1alpha1.DistributedLockList
	if err := p.r.opts.Client.List(ctx, &list, client.InNamespace(p.name.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the locks beside %s: %w", p.name, err)
	}
	for i := range list.Items {
		h := list.Items[i].Status.Holder
		if list.Items[i].Name == p.name.Name || h == nil || h.Kind != plan.KindPod ||
			!readStatus(&list.Items[i]).Ours(p.r.opts.Cluster) || !p.wasOf(ctx, h, of) {
			continue
		}
		if !slices.ContainsFunc(listed, func(pod corev1.Pod) bool { return pod.UID == h.UID }) {
			p.kin = append(p.kin, plan.Kin{Name: h.Name, UID: string(h.UID), Group: string(of.uid), Holding: true})
		}
	}
	return nil
}

// wasOf reports whether a holder was a pod of a workload: by its last state, or else by its name.
func (p *pass) wasOf(ctx context.Context, h *lockv1alpha1.Holder, of lineage) bool {
	if last := p.r.graves.find(h.UID); last != nil {
		if from, err := p.r.lineageOf(ctx, last); err == nil && from.uid != "" {
			return from.uid == of.uid
		}
		if o := metav1.GetControllerOf(last); o != nil && o.UID == of.uid {
			return true
		}
	}
	rest, found := strings.CutPrefix(h.Name, of.name+"-")
	parts := 1 // NAME-0
	if of.kind == plan.KindDeployment {
		parts = 2 // NAME-HASH-SUFFIX
	}
	return found && strings.Count(rest, "-") == parts-1
}
