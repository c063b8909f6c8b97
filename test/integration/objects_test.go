package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// newLock creates a lock that is quick enough for tests, changed by mods.
func (s *side) newLock(name string, mods ...func(*lockv1alpha1.DistributedLockSpec)) {
	s.w.t.Helper()
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: name}}
	l.Spec.TTL = seconds(6)
	for _, mod := range mods {
		mod(&l.Spec)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), l)).To(Succeed())
}

// exclusive creates a Deployment of gated pods whose process notes in the ledger when it works.
func (s *side) exclusive(lock string, replicas int32, mods ...func(*corev1.PodTemplateSpec)) {
	s.w.t.Helper()
	t := s.template(lock, "exclusive", s.w.worker, "exclusive", "-ledger", s.w.ledger.Path())
	t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}}
	s.deploy(lock, replicas, t, mods...)
}

// leader creates a Deployment of pods that all run.
func (s *side) leader(lock string, replicas int32, mods ...func(*corev1.PodTemplateSpec)) {
	s.w.t.Helper()
	s.deploy(lock, replicas, s.template(lock, "leader", "sleep", "3600"), mods...)
}

func (s *side) template(lock, mode string, command ...string) corev1.PodTemplateSpec {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": lock, lockv1alpha1.LabelSingleton: mode},
			Annotations: map[string]string{lockv1alpha1.AnnotationLock: lock},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []corev1.Container{{
				Name: "worker", Image: "worker", Command: command,
				Env: []corev1.EnvVar{
					{Name: "CONCH_KEY", Value: lock}, {Name: "CONCH_CLUSTER", Value: s.cluster.Name()},
					field("CONCH_FENCING_TOKEN", fmt.Sprintf("metadata.annotations['%s']", lockv1alpha1.AnnotationFencingToken)),
					field("POD_UID", "metadata.uid"), field("POD_NAME", "metadata.name"),
				},
			}},
		},
	}
}

func (s *side) deploy(name string, replicas int32, t corev1.PodTemplateSpec, mods ...func(*corev1.PodTemplateSpec)) {
	s.w.t.Helper()
	for _, mod := range mods {
		mod(&t)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: t,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	})).To(Succeed())
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// ttl changes a lock's time to live.
func ttl(n int) func(*lockv1alpha1.DistributedLockSpec) {
	return func(s *lockv1alpha1.DistributedLockSpec) { s.TTL = seconds(n) }
}
