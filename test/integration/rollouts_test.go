package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// version is an annotation of the template that a test changes to roll a workload.
const version = "test/version"

// rolling is Kubernetes's own default for one or more replicas.
var rolling = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}

// workload is the template of a workload whose pods note in the ledger when they work.
func (s *side) workload(lock, mode string) corev1.PodTemplateSpec {
	t := s.template(lock, mode, s.w.worker, "exclusive", "-ledger", s.w.ledger.Path())
	if mode != lockv1alpha1.SingletonLeader {
		t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}}
	}
	return t
}

func (s *side) deployment(name string, replicas int32, t corev1.PodTemplateSpec, strategy appsv1.DeploymentStrategy, mods ...func(*appsv1.DeploymentSpec)) {
	s.w.t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: t, Strategy: strategy,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	for _, mod := range mods {
		mod(&d.Spec)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), d)).To(Succeed())
}

// roll changes the template of a Deployment.
func (s *side) roll(name, to string, mods ...func(*corev1.PodTemplateSpec)) {
	s.w.t.Helper()
	s.w.Eventually(func() error {
		var d appsv1.Deployment
		if err := s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &d); err != nil {
			return err
		}
		change(&d.Spec.Template, to, mods)
		return s.client.Update(s.w.t.Context(), &d)
	}, within, look).Should(Succeed())
}

func change(t *corev1.PodTemplateSpec, to string, mods []func(*corev1.PodTemplateSpec)) {
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[version] = to
	for _, mod := range mods {
		mod(t)
	}
}

// holdsVersion waits until the lock's holder is a running pod of a version.
func (s *side) holdsVersion(lock, want string) corev1.Pod {
	s.w.t.Helper()
	var holder corev1.Pod
	s.w.Eventually(func() string {
		l := s.lock(lock)
		if l == nil || l.Status.Holder == nil || l.Status.StartedAt == nil || l.Status.State != lockv1alpha1.StateHeld {
			return describe(l)
		}
		pod := s.pod(l.Status.Holder.Name)
		if pod == nil || pod.UID != l.Status.Holder.UID || pod.Status.Phase != corev1.PodRunning {
			return "not running"
		}
		holder = *pod
		return pod.Annotations[version]
	}, within, look).Should(Equal(want))
	return holder
}

// rolledOut waits for what `kubectl rollout status` waits for.
func (s *side) rolledOut(kind, name string) {
	s.w.t.Helper()
	_, err := s.cluster.Kubectl(s.w.t.Context(), "-n", s.w.ns, "rollout", "status", kind+"/"+name, "--timeout=60s")
	s.w.Expect(err).NotTo(HaveOccurred())
}

func TestARolloutOfAnExclusiveDeploymentHandsOverAndNeverOverlaps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replicas  int32
		strategy  appsv1.DeploymentStrategy
		completes bool
	}{
		"by default, with one replica": {1, rolling, true},
		"without surge": {1, appsv1.DeploymentStrategy{Type: rolling.Type, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		}}, true},
		"by recreation":                   {1, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, true},
		"by default, with three replicas": {3, rolling, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.east.conch(1)
			w.east.newLock("web")
			w.east.deployment("web", tc.replicas, w.east.workload("web", "exclusive"), tc.strategy)
			w.east.holdsVersion("web", "")
			for _, to := range []string{"2", "3"} {
				w.east.roll("web", to)
				w.east.holdsVersion("web", to)
				if tc.completes {
					w.east.rolledOut("deployment", "web")
				}
			}
			ledger.Verdict(t, w.ledger)
		})
	}
}

func TestARolloutOfAnExclusiveStatefulSetHandsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "web",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: w.east.workload("web", "exclusive"),
		},
	}
	w.Expect(w.east.client.Create(t.Context(), set)).To(Succeed())
	w.east.holdsVersion("web", "")
	w.Eventually(func() error {
		if err := w.east.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(&set.Spec.Template, "2", nil)
		return w.east.client.Update(t.Context(), set)
	}, within, look).Should(Succeed())
	w.east.holdsVersion("web", "2")
	ledger.Verdict(t, w.ledger)
}

func TestAfterARolloutToAnImageThatCrashesTheOldRevisionRunsAgainAndStays(t *testing.T) {
	t.Parallel()
	const deadline = 5 * time.Second
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web", func(s *lockv1alpha1.DistributedLockSpec) { s.StartDeadline = &metav1.Duration{Duration: deadline} })
	// A container that crashes without a readiness probe is ready for a moment, and must not pass for available.
	w.east.deployment("web", 1, w.east.workload("web", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) { d.MinReadySeconds = 3 })
	w.east.holdsVersion("web", "")
	broken := time.Now()
	w.east.roll("web", "broken", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Command = []string{"sh", "-c", "exit 3"} })
	w.Eventually(func() string { return holderVersion(w.east, "web") }, within, look).Should(Equal("broken"))
	w.east.holdsVersion("web", "")
	w.Expect(time.Since(broken)).To(BeNumerically("<", deadline+10*time.Second+time.Second))
	w.Consistently(func() string { return holderVersion(w.east, "web") }, 3*time.Second, look).Should(BeEmpty())
	ledger.Verdict(t, w.ledger)
}

// holderVersion is the version of the pod that the lock's status names.
func holderVersion(s *side, lock string) string {
	l := s.lock(lock)
	if l == nil || l.Status.Holder == nil {
		return ""
	}
	if pod := s.pod(l.Status.Holder.Name); pod != nil {
		return pod.Annotations[version]
	}
	return ""
}

func TestMarkingADeploymentThatRunsNeverOverlapsAndNeverLoops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	plain := w.east.workload("web", "exclusive")
	plain.Spec.SchedulingGates = nil
	delete(plain.Labels, lockv1alpha1.LabelSingleton)
	plain.Annotations = nil
	plain.Spec.Containers[0].Command = append(plain.Spec.Containers[0].Command, "-unmanaged")
	w.east.deployment("web", 1, plain, rolling)
	w.Eventually(func() int { return len(w.running("web")) }, within, look).Should(Equal(1))

	w.east.roll("web", "marked", func(t *corev1.PodTemplateSpec) {
		marked := w.east.workload("web", "exclusive")
		t.Labels, t.Spec = marked.Labels, marked.Spec
		t.Annotations[lockv1alpha1.AnnotationLock] = "web"
	})
	w.east.holdsVersion("web", "marked")
	w.east.rolledOut("deployment", "web")
	var sets appsv1.ReplicaSetList
	w.Expect(w.east.client.List(t.Context(), &sets, client.InNamespace(w.ns))).To(Succeed())
	w.Expect(sets.Items).To(HaveLen(2), "one rollout")
	ledger.Verdict(t, w.ledger)
}

// running are the pods of a workload that run and are not on their way out.
func (w *world) running(app string) []corev1.Pod {
	var out []corev1.Pod
	for _, p := range w.east.pods(app) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

func TestTheModeOfARunningDeploymentChangesWithoutOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	leader := w.east.template("web", "leader", "sleep", "3600")
	w.east.deployment("web", 1, leader, rolling)
	w.east.leads("web")
	become := func(mode string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			next := w.east.workload("web", mode)
			if mode == lockv1alpha1.SingletonLeader {
				next = leader
			}
			t.Labels, t.Spec.SchedulingGates, t.Spec.Containers = next.Labels, next.Spec.SchedulingGates, next.Spec.Containers
		}
	}
	for i, mode := range []string{"exclusive", "leader", "exclusive"} {
		to := mode + string(rune('1'+i))
		w.east.roll("web", to, become(mode))
		w.east.holdsVersion("web", to)
		w.east.rolledOut("deployment", "web")
	}
	ledger.Verdict(t, w.ledger)
}
