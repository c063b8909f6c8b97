package workloads

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
)

// subject is a workload as one reconcile found it at the API server.
type subject struct {
	kind   string
	object client.Object
	// marks is the metadata that decides: the pod template's where pods want the lock, the Job's or the
	// jobTemplate's where Jobs do, the pod's own. marksAt is where in the object it stands.
	marks   *metav1.ObjectMeta
	marksAt string
	// template is the pods' one.
	template *corev1.PodTemplateSpec
	replicas int32
	// ordered is a StatefulSet that makes its pods one after the other.
	ordered bool
	// over is a workload that will make no pods any more.
	over bool
	// schedule and timeZone are a CronJob's.
	schedule string
	timeZone bool
}

// read gets a workload from the API server itself: what is decided here is worth one request per change,
// and no copy of every template of the cluster.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*subject, error) {
	o := r.kind.empty()
	if err := r.opts.APIReader.Get(ctx, name, o); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", r.kind.name, name, err)
	}
	return subjectOf(r.kind.name, o), nil
}

func subjectOf(kind string, o client.Object) *subject {
	s := &subject{kind: kind, object: o, replicas: 1}
	switch o := o.(type) {
	case *appsv1.Deployment:
		s.template, s.marks, s.marksAt = &o.Spec.Template, &o.Spec.Template.ObjectMeta, "spec.template"
		s.replicas = orOne(o.Spec.Replicas)
	case *appsv1.StatefulSet:
		s.template, s.marks, s.marksAt = &o.Spec.Template, &o.Spec.Template.ObjectMeta, "spec.template"
		s.replicas, s.ordered = orOne(o.Spec.Replicas), o.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	case *batchv1.CronJob:
		s.template, s.marks, s.marksAt = &o.Spec.JobTemplate.Spec.Template, &o.Spec.JobTemplate.ObjectMeta, "spec.jobTemplate"
		s.schedule, s.timeZone = o.Spec.Schedule, o.Spec.TimeZone != nil
	case *batchv1.Job:
		s.template, s.marks = &o.Spec.Template, &o.ObjectMeta
		s.over = finished(o)
	case *corev1.Pod:
		s.template, s.marks = &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, &o.ObjectMeta
		s.over = o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
	}
	return s
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func finished(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// asked is the mode that the user wrote on the workload.
func (s *subject) asked() string { return s.object.GetAnnotations()[lockv1alpha1.AnnotationSingleton] }

// carried is the mode that the marks say, which is what pods or Jobs will have. Policies make the label from
// the annotation where the pods or Jobs are made, so either will do.
func (s *subject) carried() string {
	if mode := s.marks.Labels[lockv1alpha1.LabelSingleton]; mode != "" {
		return mode
	}
	return s.marks.Annotations[lockv1alpha1.AnnotationSingleton]
}

// mode is what the workload will be once its marks are in place; empty for one that wants no lock.
func (s *subject) mode() string {
	for _, mode := range []string{s.carried(), s.asked()} {
		if known(mode) {
			return mode
		}
	}
	return ""
}

func known(mode string) bool {
	switch mode {
	case lockv1alpha1.SingletonLeader, lockv1alpha1.SingletonExclusive, lockv1alpha1.SingletonActivePassive:
		return true
	}
	return false
}

// lock is the lock that the workload's pods or Jobs want, and whether it is named rather than the workload's
// own, whose name policies write into the marks. Marks decide where there are any, because pods and Jobs
// have no other.
func (s *subject) lock() (name string, named bool) {
	own := naming.Lock(s.kind, s.object.GetName())
	name = naming.Named(s.marks)
	if name == "" && s.carried() == "" {
		name = naming.Named(s.object)
	}
	if name == "" {
		name = own
	}
	return name, name != own
}
