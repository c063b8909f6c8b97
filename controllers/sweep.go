package controllers

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// sweep removes what an attempt of this cluster left in the store, once the API server itself says
// that it never started anything. The cache may lag behind a decider that named and started this very
// owner a moment ago; to remove its key, as a clean end at that, would let another cluster start at once.
func (p *pass) sweep(ctx context.Context, h plan.Holder) error {
	left := keeper.ID{Key: p.terms.key, Owner: lock.Owner(h.Owner)}
	if _, underWay := p.mem.leaving[left]; underWay {
		return nil
	}
	current, err := p.cacheIsCurrent(ctx)
	if err != nil {
		return err
	}
	started, err := p.bearsRecord(ctx, h)
	if err != nil {
		return err
	}
	if !current || started {
		p.again = cacheLag
		return nil
	}
	p.abandon(p.terms.backend, left)
	return nil
}

// cacheIsCurrent reports whether the API server has the very version of the lock that this pass saw.
func (p *pass) cacheIsCurrent(ctx context.Context) (bool, error) {
	var now lockv1alpha1.DistributedLock
	err := p.r.opts.APIReader.Get(ctx, p.name, &now)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read lock %s anew: %w", p.name, err)
	}
	return err == nil && p.lock != nil && now.UID == p.lock.UID && now.ResourceVersion == p.lock.ResourceVersion, nil
}

// compositeBearsRecord does so for a Job or workload, which may be gone while its pods are not.
func (p *pass) compositeBearsRecord(ctx context.Context, h plan.Holder) (bool, error) {
	if h.Kind == plan.KindJob {
		var job batchv1.Job
		err := p.r.opts.APIReader.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, &job)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read Job %s anew: %w", h.Name, err)
		}
		mine := err == nil && string(job.UID) == h.UID && job.Annotations[lockv1alpha1.AnnotationHolderIdentity] == h.Owner
		if mine && !ptr.Deref(job.Spec.Suspend, false) && !finished(&job) {
			return true, nil
		}
	}
	pods, err := p.listMembers(ctx, &house{kind: h.Kind, name: h.Name, uid: types.UID(h.UID)})
	if err != nil {
		return false, err
	}
	return anyUnfinished(slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Annotations[lockv1alpha1.AnnotationHolderIdentity] != h.Owner
	})), nil
}

// bearsRecord reports whether the pod behind an owner was started under that name: its record says so,
// though a status may have been lost.
func (p *pass) bearsRecord(ctx context.Context, h plan.Holder) (bool, error) {
	if h.Kind == plan.KindJob || isWorkload(h.Kind) {
		return p.compositeBearsRecord(ctx, h)
	}
	var pod corev1.Pod
	err := p.r.opts.APIReader.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, &pod)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read pod %s anew: %w", h.Name, err)
	}
	return string(pod.UID) == h.UID && pod.Annotations[lockv1alpha1.AnnotationHolderIdentity] == h.Owner, nil
}
