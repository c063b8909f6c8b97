package controllers

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/controllers/plan"
)

// deploymentRevision is where the deployment controller numbers the versions of a Deployment.
const deploymentRevision = "deployment.kubernetes.io/revision"

// lineage says which version of which workload a pod is of. It is the zero value for a bare pod, and for
// one whose workload cannot be found.
type lineage struct {
	// kind, name and uid are the workload's.
	kind, name string
	uid        types.UID
	// revision orders the versions of one workload; 0 where they are not numbered.
	revision int64
}

// group is what candidates of one workload share, and the revision among them.
func (l lineage) group(pod *corev1.Pod) (string, int64) {
	if l.uid != "" {
		return string(l.uid), l.revision
	}
	if o := metav1.GetControllerOf(pod); o != nil {
		return string(o.UID), 0
	}
	return string(pod.UID), 0
}

// lineageOf finds a pod's workload through its owner references.
func (r *Reconciler) lineageOf(ctx context.Context, pod *corev1.Pod) (lineage, error) {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return lineage{}, nil
	case owner.Kind == "ReplicaSet":
		return r.lineageOfReplicaSet(ctx, pod.Namespace, owner)
	case owner.Kind == "StatefulSet":
		revision, err := r.controllerRevision(ctx, pod)
		return lineage{kind: owner.Kind, name: owner.Name, uid: owner.UID, revision: revision}, err
	}
	return lineage{}, nil
}

// lineageOfReplicaSet looks in the cache, which has the ReplicaSets of marked templates, and then at the
// API server.
func (r *Reconciler) lineageOfReplicaSet(ctx context.Context, namespace string, owner *metav1.OwnerReference) (lineage, error) {
	rs := replicaSet()
	key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
	err := r.opts.Client.Get(ctx, key, rs)
	if apierrors.IsNotFound(err) || err == nil && rs.UID != owner.UID {
		err = r.opts.APIReader.Get(ctx, key, rs)
	}
	if apierrors.IsNotFound(err) || err == nil && rs.UID != owner.UID {
		return lineage{}, nil
	}
	if err != nil {
		return lineage{}, fmt.Errorf("read ReplicaSet %s: %w", key, err)
	}
	deployment := metav1.GetControllerOf(rs)
	if deployment == nil || deployment.Kind != plan.KindDeployment {
		return lineage{}, nil
	}
	revision, err := strconv.ParseInt(rs.Annotations[deploymentRevision], 10, 64)
	if err != nil {
		revision = 0 // the deployment controller numbers it in a moment
	}
	return lineage{kind: deployment.Kind, name: deployment.Name, uid: deployment.UID, revision: revision}, nil
}

// replicaSet is the metadata of one, which is all that is read of it.
func replicaSet() *metav1.PartialObjectMetadata {
	rs := &metav1.PartialObjectMetadata{}
	rs.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return rs
}

// controllerRevision is the number of the version that a StatefulSet's pod was made from.
func (r *Reconciler) controllerRevision(ctx context.Context, pod *corev1.Pod) (int64, error) {
	key := client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[appsv1.ControllerRevisionHashLabelKey]}
	if key.Name == "" {
		return 0, nil
	}
	var rev appsv1.ControllerRevision
	err := r.opts.Client.Get(ctx, key, &rev)
	if apierrors.IsNotFound(err) {
		err = r.opts.APIReader.Get(ctx, key, &rev)
	}
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read ControllerRevision %s: %w", key, err)
	}
	return rev.Revision, nil
}
