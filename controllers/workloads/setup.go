package workloads

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
)

// workers is how many workloads of one kind are reconciled at once.
const workers = 4

// SetupWithManager registers a reconciler for each kind of workload. It runs on every replica; changed makes
// a channel that tells when another replica may have begun to decide.
func SetupWithManager(mgr ctrl.Manager, o Options, changed func() <-chan struct{}) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for _, k := range kinds {
		r := &Reconciler{opts: o, kind: k, told: newTold(), uses: newUses()}
		if err := r.setup(mgr, changed()); err != nil {
			return fmt.Errorf("watch workloads of kind %s: %w", k.name, err)
		}
	}
	return nil
}

func (r *Reconciler) setup(mgr ctrl.Manager, changed <-chan struct{}) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("workload-"+strings.ToLower(r.kind.name)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NeedLeaderElection: ptr.To(false)}).
		Watches(r.kind.watched(), handler.EnqueueRequestsFromMapFunc(r.itself), builder.WithPredicates(r.marksChanged())).
		Watches(&lockv1alpha1.DistributedLock{}, handler.EnqueueRequestsFromMapFunc(r.usersOf), builder.WithPredicates(lockChanged())).
		WatchesRawSource(r.everyWorkload(changed))
	if r.kind.made != nil {
		b = b.Watches(r.kind.made(), handler.EnqueueRequestsFromMapFunc(r.maker), builder.WithPredicates(created())).
			Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.workloadOf), builder.WithPredicates(created()))
	}
	return b.Complete(r)
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// itself leaves out what another workload answers for.
func (r *Reconciler) itself(_ context.Context, o client.Object) []reconcile.Request {
	if r.kind.made == nil && (metav1.GetControllerOf(o) != nil || o.GetLabels()[lockv1alpha1.LabelSingleton] == "") {
		return nil
	}
	return request(o.GetNamespace(), o.GetName())
}

// maker is the workload that made a marked ReplicaSet, ControllerRevision or Job.
func (r *Reconciler) maker(_ context.Context, o client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != r.kind.name {
		return nil
	}
	return request(o.GetNamespace(), owner.Name)
}

// workloadOf is the workload of a pod whose lock there is not. Pods are marked one by one where the template
// has the annotation and policies make the label from it.
func (r *Reconciler) workloadOf(ctx context.Context, pod client.Object) []reconcile.Request {
	ofKind, name, ok := naming.Workload("Pod", pod)
	if !ok || ofKind != r.kind.name || naming.Of("Pod", pod) != naming.Lock(ofKind, name) {
		return nil
	}
	var l lockv1alpha1.DistributedLock
	if err := r.opts.Client.Get(ctx, types.NamespacedName{Namespace: pod.GetNamespace(), Name: naming.Lock(ofKind, name)}, &l); err == nil {
		return nil
	}
	return request(pod.GetNamespace(), name)
}

// usersOf are the workloads that want a lock, and the one that owns it.
func (r *Reconciler) usersOf(ctx context.Context, l client.Object) []reconcile.Request {
	out := r.maker(ctx, l)
	for _, name := range r.uses.of(client.ObjectKeyFromObject(l)) {
		out = append(out, reconcile.Request{NamespacedName: name})
	}
	return out
}

// marksChanged lets through workloads that bear a mark, or bore one, when something changed that matters.
// Status and the like do not: a Deployment's changes with each of its pods.
func (r *Reconciler) marksChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return marked(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			if !marked(before) && !marked(after) && !r.uses.known(client.ObjectKeyFromObject(after)) {
				return false
			}
			return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
				!maps.Equal(marksIn(before.GetAnnotations()), marksIn(after.GetAnnotations())) ||
				!maps.Equal(marksIn(before.GetLabels()), marksIn(after.GetLabels()))
		},
	}
}

func marked(o client.Object) bool {
	return len(marksIn(o.GetAnnotations())) > 0 || len(marksIn(o.GetLabels())) > 0
}

// lockChanged lets through locks that come, go or get another spec.
func lockChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

func created() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
