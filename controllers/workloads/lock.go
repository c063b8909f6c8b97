package workloads

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// resolve finds the lock of a workload, and makes the workload's own where there is none. Nothing is
// returned for a named lock that does not exist.
func (r *Reconciler) resolve(ctx context.Context, s *subject) (*lockv1alpha1.DistributedLock, error) {
	name, named := s.lock()
	key := types.NamespacedName{Namespace: s.object.GetNamespace(), Name: name}
	l, err := r.find(ctx, key)
	if l != nil || err != nil || named || s.over || s.object.GetDeletionTimestamp() != nil {
		return l, err
	}
	return r.make(ctx, s, key)
}

// find looks in the cache and then at the API server.
func (r *Reconciler) find(ctx context.Context, key types.NamespacedName) (*lockv1alpha1.DistributedLock, error) {
	var l lockv1alpha1.DistributedLock
	err := r.opts.Client.Get(ctx, key, &l)
	if apierrors.IsNotFound(err) {
		err = r.opts.APIReader.Get(ctx, key, &l)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read lock %s: %w", key, err)
	}
	return &l, nil
}

// make creates a workload's own lock. It has no spec: what an operator writes there is never changed back.
//
// blockOwnerDeletion stays away: setting it takes the right to update the owner's finalizers on clusters
// that check that, and a lock need not be gone before its workload is.
func (r *Reconciler) make(ctx context.Context, s *subject, key types.NamespacedName) (*lockv1alpha1.DistributedLock, error) {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "conch"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: r.kind.version.String(), Kind: s.kind, Name: s.object.GetName(), UID: s.object.GetUID(), Controller: ptr.To(true),
		}},
	}}
	if !r.opts.Election.Deciding() {
		return nil, errNotDeciding
	}
	if err := r.opts.Client.Create(ctx, l); err != nil {
		return nil, fmt.Errorf("make lock %s: %w", key, err)
	}
	ctrl.LoggerFrom(ctx).Info("Lock made", "lock", key.Name, "for", s.kind+"/"+s.object.GetName())
	r.event(s, advice{normal, "LockCreated", "Create", fmt.Sprintf(
		"made DistributedLock %s, which goes when this %s goes; its spec is yours to change", key.Name, s.kind)})
	return l, nil
}

// lockAdvice is about a lock that is missing, or that is not the workload's own although it bears its name.
func lockAdvice(s *subject, l *lockv1alpha1.DistributedLock) []advice {
	name, named := s.lock()
	switch {
	case l == nil && named && !s.over:
		return []advice{{warning, "LockNotFound", waits, fmt.Sprintf(
			"there is no DistributedLock %q in this namespace, and nothing starts until there is one: create it, or remove annotation %s for one made by conch",
			name, lockv1alpha1.AnnotationLock)}}
	case l == nil || named:
		return nil
	}
	owner := metav1.GetControllerOf(l)
	if owner != nil && owner.UID == s.object.GetUID() {
		return nil
	}
	whose := "belongs to nobody and stays when this " + s.kind + " goes"
	switch {
	case owner != nil && owner.Kind == s.kind && owner.Name == s.object.GetName():
		return nil // its predecessor's, which the garbage collector is about to take
	case owner != nil:
		whose = "belongs to " + owner.Kind + " " + owner.Name + " and goes with it"
	}
	return []advice{{normal, "LockFound", "Use", fmt.Sprintf("uses DistributedLock %s as it is: it %s", l.Name, whose)}}
}

// lockKey is the lock that a subject waits for or uses.
func lockKey(s *subject) types.NamespacedName {
	name, _ := s.lock()
	return types.NamespacedName{Namespace: s.object.GetNamespace(), Name: name}
}
