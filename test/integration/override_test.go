package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// breakGlass lets a pod past its gate by an operator's hand.
func (s *side) breakGlass(pod corev1.Pod, reason string) {
	s.w.t.Helper()
	base := pod.DeepCopy()
	pod.Annotations[lockv1alpha1.AnnotationOverride] = reason
	pod.Spec.SchedulingGates = nil
	s.w.Expect(s.client.Patch(s.w.t.Context(), &pod, client.MergeFrom(base))).To(Succeed())
}

func TestBreakingTheGlassWorksWithoutConchAndRedisAndThePodIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redis.Kill()
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1, func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Command = append(t.Spec.Containers[0].Command, "-unmanaged")
	})
	w.Eventually(func() []corev1.Pod { return w.east.pods("jobs") }, within, look).Should(HaveLen(1))
	w.east.breakGlass(w.east.pods("jobs")[0], "the shop is closed")
	first := w.east.runs("jobs", 0)

	w.Expect(w.redis.Restart(t.Context())).To(Succeed())
	w.east.conch(1)
	held := w.east.holds("jobs")
	w.Expect(held.Status.Holder.UID).To(Equal(first.UID))
	w.Eventually(func() map[string]string { return w.east.pod(first.Name).Annotations }, within, look).
		Should(HaveKeyWithValue(lockv1alpha1.AnnotationHolderIdentity, held.Status.Holder.Identity))
	w.Eventually(func() map[string]int { return w.east.eventsOn("Pod") }, within, look).Should(HaveKey("GateOverridden"))
	ledger.Verdict(t, w.ledger)
}
