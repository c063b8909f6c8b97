package controllers

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
	"github.com/conch-dev/conch/controllers/plan"
)

// lockNames is the lock that a marked pod or Job names. A Job that names none has its own, or that of its
// CronJob.
func lockNames(o client.Object) []string {
	if o.GetLabels()[lockv1alpha1.LabelSingleton] == "" {
		return nil
	}
	name := strings.TrimSpace(o.GetAnnotations()[lockv1alpha1.AnnotationLock])
	if _, isJob := o.(*batchv1.Job); isJob && name == "" {
		name = naming.Lock(plan.KindJob, o.GetName())
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "CronJob" {
			name = naming.Lock(owner.Kind, owner.Name)
		}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// memberNodes is the node of a pod that belongs to something larger, whose lock does not name the node.
func memberNodes(o client.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	if jobOf(pod) == nil && pod.Labels[lockv1alpha1.LabelSingleton] != lockv1alpha1.SingletonActivePassive {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

func locksNamed(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range lockNames(o) {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}

func (r *Reconciler) locksOnNode(ctx context.Context, node client.Object) []reconcile.Request {
	var list lockv1alpha1.DistributedLockList
	if err := r.opts.Client.List(ctx, &list, client.MatchingFields{nodeField: node.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the locks of a node", "node", node.GetName())
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return append(out, r.locksOfPods(ctx, func(*corev1.Pod) bool { return true }, client.MatchingFields{nodeField: node.GetName()})...)
}

// locksOfReplicaSet names the locks of a ReplicaSet's pods. When a Deployment lets go of it, nothing about
// the pods changes.
func (r *Reconciler) locksOfReplicaSet(ctx context.Context, rs client.Object) []reconcile.Request {
	ofSet := func(pod *corev1.Pod) bool {
		o := metav1.GetControllerOf(pod)
		return o != nil && o.UID == rs.GetUID()
	}
	return r.locksOfPods(ctx, ofSet, client.InNamespace(rs.GetNamespace()))
}

func (r *Reconciler) locksOfPods(ctx context.Context, match func(*corev1.Pod) bool, opts ...client.ListOption) []reconcile.Request {
	var list corev1.PodList
	if err := r.opts.Client.List(ctx, &list, opts...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing pods to find their locks")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			out = append(out, locksNamed(ctx, &list.Items[i])...)
		}
	}
	return out
}

// ownerChanged lets through a ReplicaSet whose Deployment let go of it, or took it.
func ownerChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := metav1.GetControllerOf(e.ObjectOld), metav1.GetControllerOf(e.ObjectNew)
			return (before == nil) != (after == nil) || before != nil && before.UID != after.UID
		},
	}
}

// nodeChanged lets through what bears on the death of pods. Heartbeats do not.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok1 || !ok2 || nodeOf(before, "") != nodeOf(after, "") ||
			before.Status.NodeInfo.BootID != after.Status.NodeInfo.BootID
	}}
}
