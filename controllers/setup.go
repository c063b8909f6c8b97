package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

const (
	// lockField indexes pods and Jobs by the lock that they name, nodeField locks by the node of their
	// holder, and pods of larger holders by their own, and ownerField locks by the owner in the store that their status names.
	lockField  = "conch.dev/lock"
	nodeField  = "status.holder.node"
	ownerField = "status.holder.identity"

	// workers is how many locks are reconciled at once. A pass waits for the API server only.
	workers = 16
)

// News are the channels through which the rest of the process wakes the controllers.
type News struct {
	// Keepers tell of their entries.
	Keepers []<-chan keeper.Event
	// Everything tells that something changed which concerns every lock.
	Everything []<-chan struct{}
}

// SetupWithManager registers indexes, watches and the reconciler. It runs on every replica.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, news News) error {
	if err := r.indexFields(ctx, mgr); err != nil {
		return err
	}
	pods, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if _, err := pods.AddEventHandler(r.graves.handler()); err != nil {
		return fmt.Errorf("watch the deletion of pods: %w", err)
	}
	jobs, err := mgr.GetCache().GetInformer(ctx, &batchv1.Job{})
	if err != nil {
		return fmt.Errorf("watch Jobs: %w", err)
	}
	if _, err := jobs.AddEventHandler(r.endings.handler()); err != nil {
		return fmt.Errorf("watch the deletion of Jobs: %w", err)
	}
	// Read in every pass, and so that their caches are filled before the first one.
	for _, o := range []client.Object{replicaSet(), &appsv1.ControllerRevision{}, &batchv1.CronJob{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, o); err != nil {
			return fmt.Errorf("watch the versions of workloads: %w", err)
		}
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("distributedlock").
		For(&lockv1alpha1.DistributedLock{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.locksOfPod)).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(locksNamed)).
		WatchesMetadata(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(r.locksOfReplicaSet), builder.WithPredicates(ownerChanged())).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.locksOnNode), builder.WithPredicates(nodeChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NeedLeaderElection: ptr.To(false)})
	for _, ch := range news.Keepers {
		b = b.WatchesRawSource(r.newsFrom(ch))
	}
	for _, ch := range news.Everything {
		b = b.WatchesRawSource(r.everyLock(ch))
	}
	return b.Complete(r)
}

func (r *Reconciler) indexFields(ctx context.Context, mgr ctrl.Manager) error {
	ix := mgr.GetFieldIndexer()
	if err := ix.IndexField(ctx, &corev1.Pod{}, lockField, lockNames); err != nil {
		return fmt.Errorf("index pods by lock: %w", err)
	}
	if err := ix.IndexField(ctx, &batchv1.Job{}, lockField, lockNames); err != nil {
		return fmt.Errorf("index Jobs by lock: %w", err)
	}
	if err := ix.IndexField(ctx, &corev1.Pod{}, nodeField, memberNodes); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	if err := ix.IndexField(ctx, &corev1.Pod{}, kinField, workloadOf); err != nil {
		return fmt.Errorf("index pods by workload: %w", err)
	}
	for field, value := range map[string]func(*lockv1alpha1.Holder) string{
		nodeField:  func(h *lockv1alpha1.Holder) string { return h.Node },
		ownerField: func(h *lockv1alpha1.Holder) string { return h.Identity },
	} {
		if err := ix.IndexField(ctx, &lockv1alpha1.DistributedLock{}, field, func(o client.Object) []string {
			l, ok := o.(*lockv1alpha1.DistributedLock)
			if !ok || l.Status.Holder == nil || value(l.Status.Holder) == "" {
				return nil
			}
			return []string{value(l.Status.Holder)}
		}); err != nil {
			return fmt.Errorf("index locks by %s: %w", field, err)
		}
	}
	return nil
}

// allLocks names every lock that the cache or this process knows.
func (r *Reconciler) allLocks(ctx context.Context) []types.NamespacedName {
	names := r.memories.names()
	var list lockv1alpha1.DistributedLockList
	if err := r.opts.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing all locks")
		return names
	}
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return names
}
