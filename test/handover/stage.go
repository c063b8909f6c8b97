package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace = "handover"
	lockName  = "job"
	// replicas is one holder and enough standbys that one is always there, also while the
	// ReplicaSet controller replaces the pod that just died.
	replicas = 4
)

// stage is where the handovers take place.
type stage struct{ *rig.Stage }

// raise starts everything and creates the lock and its pods. The caller closes the stage.
func raise(ctx context.Context) (*stage, error) {
	r, err := rig.Raise(ctx, rig.StageOptions{Name: "handover", Namespace: namespace})
	if err != nil {
		return nil, err
	}
	s := &stage{r}
	if err := s.createPods(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *stage) createPods(ctx context.Context) error {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lockName}}
	l.Spec.TTL = &metav1.Duration{Duration: 15 * time.Second}
	if err := s.Client.Create(ctx, l); err != nil {
		return fmt.Errorf("create the lock: %w", err)
	}
	labels := map[string]string{"app": lockName}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lockName}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](replicas),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{"app": lockName, lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonExclusive},
				Annotations: map[string]string{lockv1alpha1.AnnotationLock: lockName},
			},
			Spec: corev1.PodSpec{
				SchedulingGates:               []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}},
				TerminationGracePeriodSeconds: ptr.To[int64](2),
				Containers:                    []corev1.Container{{Name: "job", Image: "job", Command: []string{"sleep", "3600"}}},
			},
		},
	}
	if err := s.Client.Create(ctx, d); err != nil {
		return fmt.Errorf("create the pods: %w", err)
	}
	return nil
}
