package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// passive is the template of an active-passive workload: all pods of one cluster are one tenure.
func (s *side) passive(lock string, mods ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	t := s.workload(lock, lockv1alpha1.SingletonActivePassive)
	env := &t.Spec.Containers[0].Env
	*env = append(*env, corev1.EnvVar{Name: "CONCH_TENURE", Value: s.cluster.Name()})
	for _, mod := range mods {
		mod(&t)
	}
	return t
}

// active waits until n pods run here, none waits, and the lock is held by the workload.
func (s *side) active(lock string, n int) []corev1.Pod {
	s.w.t.Helper()
	var running []corev1.Pod
	s.w.Eventually(func() [2]int {
		running = nil
		var waiting int
		for _, p := range s.pods(lock) {
			switch {
			case gatedPod(p):
				waiting++
			case p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil:
				running = append(running, p)
			}
		}
		return [2]int{len(running), waiting}
	}, within, look).Should(Equal([2]int{n, 0}), func() string { return describe(s.lock(lock)) })
	return running
}

func gatedPod(p corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }

// both creates the same Deployment in both clusters: east holds, west waits.
func (w *world) both(replicas int32, strategy appsv1.DeploymentStrategy, mods ...func(*appsv1.DeploymentSpec)) {
	w.t.Helper()
	for _, s := range []*side{w.east, w.west} {
		s.conch(1)
		s.newLock("web")
		s.deployment("web", replicas, s.passive("web"), strategy, mods...)
		if s == w.east {
			s.active("web", int(replicas))
			s.holds("web")
		}
	}
	w.west.gatedOnly("web", int(replicas), 0)
	w.Eventually(func() string { return describe(w.west.lock("web")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
}

func (s *side) scale(name string, to int32) {
	s.w.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: name}}
	body := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+string('0'+to)+`}}`))
	s.w.Expect(s.client.Patch(s.w.t.Context(), d, body)).To(Succeed())
}

func TestAllReplicasRunInOneClusterAndFailOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end    func(w *world)
		strict bool // whether east stays away
	}{
		"when it is scaled to zero": {strict: true, end: func(w *world) { w.east.scale("web", 0) }},
		"when it is deleted": {strict: true, end: func(w *world) {
			w.Expect(w.east.client.Delete(w.t.Context(), w.east.deploymentNow("web"))).To(Succeed())
		}},
		"when it is deleted without its pods, which are stopped": {end: func(w *world) {
			w.Expect(w.east.client.Delete(w.t.Context(), w.east.deploymentNow("web"), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		}},
		"when its lock is deleted": {strict: true, end: func(w *world) {
			w.Expect(w.east.client.Delete(w.t.Context(), w.east.lock("web"))).To(Succeed())
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.both(3, rolling)
			first := w.east.active("web", 3)
			held := w.east.lock("web")
			w.Expect(held.Status.Holder.Kind).To(Equal("Deployment"))
			w.Expect(held.Status.Holder.UID).To(Equal(w.east.deploymentNow("web").UID))
			tc.end(w)
			for _, pod := range first {
				w.east.gone(pod.Name)
			}
			w.west.active("web", 3)
			w.Expect(w.west.holds("web").Status.FencingToken).To(BeNumerically(">", held.Status.FencingToken))
			if tc.strict {
				w.Expect(w.east.pods("web")).To(HaveEach(HaveField("Spec.SchedulingGates", Not(BeEmpty()))))
			}
			ledger.Verdict(t, w.ledger)
		})
	}
}

func (s *side) deploymentNow(name string) *appsv1.Deployment {
	var d appsv1.Deployment
	s.w.Expect(s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &d)).To(Succeed())
	return &d
}

func TestAReleaseMovesAllReplicasToTheOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.both(2, rolling)
	held := w.east.lock("web")
	pods := w.east.active("web", 2)
	w.east.annotate("web", lockv1alpha1.AnnotationRelease, pods[0].Annotations[lockv1alpha1.AnnotationFencingToken])
	w.west.active("web", 2)
	w.Expect(w.west.holds("web").Status.FencingToken).To(BeNumerically(">", held.Status.FencingToken))
	w.east.gatedOnly("web", 2, time.Second)
	ledger.Verdict(t, w.ledger)
}

// The lock is lost while conch is well: every pod is stopped before it runs out, and none starts again.
func TestAnActivePassiveWorkloadThatLostItsLockIsStoppedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	w.east.deployment("web", 3, w.east.passive("web", flags("-ignore-term"), grace(30)), rolling)
	first := w.east.active("web", 3)
	held := w.east.holds("web")
	w.Expect(w.redisClient().Set(t.Context(), w.keyOf("web"), "somebody else", 8*time.Second).Err()).To(Succeed())
	for _, pod := range first {
		w.east.gone(pod.Name)
	}
	w.Expect(w.redisClient().Get(t.Context(), w.keyOf("web")).Val()).To(Equal("somebody else"))
	w.east.passesOn("web", held.Status.FencingToken)
	w.east.active("web", 3)
	ledger.Verdict(t, w.ledger)
}

func TestARolloutOfAnActivePassiveWorkloadStaysInItsCluster(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]appsv1.DeploymentStrategy{
		"by default":    rolling,
		"by recreation": {Type: appsv1.RecreateDeploymentStrategyType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.both(3, strategy)
			held := w.east.lock("web")
			w.east.roll("web", "2")
			w.east.rolledOut("deployment", "web")
			w.Expect(w.east.active("web", 3)).To(HaveEach(HaveField("ObjectMeta.Annotations", HaveKeyWithValue(version, "2"))))
			w.Expect(w.east.holds("web").Status.FencingToken).To(Equal(held.Status.FencingToken), "one tenure")
			w.east.scale("web", 5)
			w.east.active("web", 5)
			w.west.gatedOnly("web", 3, 0)
			ledger.Verdict(t, w.ledger)
		})
	}
}

func TestAnActivePassiveStatefulSetStartsItsPodsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), ServiceName: "web",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: w.east.passive("web"),
		},
	}
	w.Expect(w.east.client.Create(t.Context(), set)).To(Succeed())
	w.east.active("web", 3)
	held := w.east.holds("web")
	w.Expect(held.Status.Holder.Kind).To(Equal("StatefulSet"))
	w.Eventually(func() error {
		if err := w.east.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(&set.Spec.Template, "2", nil)
		return w.east.client.Update(t.Context(), set)
	}, within, look).Should(Succeed())
	w.east.rolledOut("statefulset", "web")
	w.Expect(w.east.lock("web").Status.FencingToken).To(Equal(held.Status.FencingToken))
	ledger.Verdict(t, w.ledger)
}

// Another controller's gate stays where it is (C113).
func TestOnlyConchsOwnGateIsLifted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("web")
	w.east.deployment("web", 1, w.east.passive("web", func(p *corev1.PodTemplateSpec) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/x"}, {Name: lockv1alpha1.GateLock}, {Name: "example.com/y"}}
	}), rolling)
	w.Eventually(func() []corev1.PodSchedulingGate {
		if pods := w.east.pods("web"); len(pods) == 1 {
			return pods[0].Spec.SchedulingGates
		}
		return nil
	}, within, look).Should(Equal([]corev1.PodSchedulingGate{{Name: "example.com/x"}, {Name: "example.com/y"}}))
	w.Expect(w.east.lock("web").Status.StartedAt).To(BeNil(), "no pod is ready yet")
	ledger.Verdict(t, w.ledger)
}

// What people see where the workload waits: the rollout does not complete, and says so after
// progressDeadlineSeconds. A deadline that outlasts the wait keeps it calm; paused does from the start.
func TestWhatARolloutShowsInTheClusterThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.both(1, rolling, func(d *appsv1.DeploymentSpec) { d.ProgressDeadlineSeconds = ptr.To[int32](4) })
	_, err := w.west.cluster.Kubectl(t.Context(), "-n", w.ns, "rollout", "status", "deployment/web", "--timeout=60s")
	w.Expect(err).To(MatchError(ContainSubstring("exceeded its progress deadline")))
	w.Expect(w.west.progress("web")).To(Equal("ProgressDeadlineExceeded"))

	calm := w.west.passive("calm")
	calm.Annotations[lockv1alpha1.AnnotationLock] = "web"
	w.west.deployment("calm", 1, calm, rolling, func(d *appsv1.DeploymentSpec) { d.ProgressDeadlineSeconds = ptr.To[int32](1<<31 - 1) })
	w.Eventually(func() []corev1.Pod { return w.west.pods("calm") }, within, look).Should(HaveLen(1))
	w.Consistently(func() string { return w.west.progress("calm") }, 6*time.Second, look).ShouldNot(Equal("ProgressDeadlineExceeded"))
	_, err = w.west.cluster.Kubectl(t.Context(), "-n", w.ns, "rollout", "status", "deployment/calm", "--timeout=1s")
	w.Expect(err).To(MatchError(ContainSubstring("timed out")))
	ledger.Verdict(t, w.ledger)
}

// progress is why a Deployment is said to get on or not.
func (s *side) progress(name string) string {
	for _, c := range s.deploymentNow(name).Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Reason
		}
	}
	return ""
}
