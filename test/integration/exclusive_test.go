package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// runs waits until exactly one pod of a lock runs and n wait behind their gates.
func (s *side) runs(lock string, gated int) corev1.Pod {
	s.w.t.Helper()
	var holder corev1.Pod
	s.w.Eventually(func() [2]int {
		var n [2]int
		for _, p := range s.pods(lock) {
			switch {
			case len(p.Spec.SchedulingGates) > 0:
				n[1]++
			case p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil:
				n[0]++
				holder = p
			}
		}
		return n
	}, within, look).Should(Equal([2]int{1, gated}), describe(s.lock(lock)))
	return holder
}

func (s *side) remove(pod string, opts ...client.DeleteOption) {
	s.w.t.Helper()
	p := s.pod(pod)
	s.w.Expect(p).NotTo(BeNil())
	s.w.Expect(s.client.Delete(s.w.t.Context(), p, opts...)).To(Succeed())
}

func TestAnExclusivePodRunsWhileItsStandbysWaitAndTheNextTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 3)

	first := w.east.runs("jobs", 2)
	held := w.east.holds("jobs")
	w.Expect(held.Status.Holder.UID).To(Equal(first.UID))
	w.Expect(first.Annotations).To(HaveKeyWithValue(lockv1alpha1.AnnotationHolderIdentity, held.Status.Holder.Identity))
	w.Expect(held.Status.Waiters.Count).To(BeEquivalentTo(2))

	w.east.remove(first.Name)
	w.Eventually(func() string {
		l := w.east.lock("jobs")
		if l.Status.Holder == nil {
			return ""
		}
		return string(l.Status.Holder.UID)
	}, within, look).ShouldNot(BeElementOf("", string(first.UID)))
	after := w.east.holds("jobs")
	w.Expect(after.Status.FencingToken).To(BeNumerically(">", held.Status.FencingToken))
	w.Expect(after.Status.History).NotTo(BeEmpty())
	w.east.runs("jobs", 2)
	ledger.Verdict(t, w.ledger)
}

func TestAnotherClusterWaitsAndTakesOverAfterTheHoldersDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.west.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	w.west.newLock("jobs")
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).
		Should(HavePrefix("Waiting by " + w.east.id()))
	w.Expect(w.west.lock("jobs").Status.HighestSeen).To(Equal(w.east.lock("jobs").Status.FencingToken))

	_, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "delete", "deployment", "jobs", "--wait=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.west.holds("jobs")
	w.west.runs("jobs", 0)
	ledger.Verdict(t, w.ledger)
}

// C07, C23, C29, C35: what was taken by another is never taken back, and the holder stops.
func TestAHolderWhoseKeySomebodyElseHasIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	key := w.redisKey(w.east, "jobs")
	held := w.east.holds("jobs")
	w.Expect(w.redisClient().Set(t.Context(), key, "somebody else", 8*time.Second).Err()).To(Succeed())

	w.Eventually(func() bool { return w.east.pod(held.Status.Holder.Name) == nil }, within, look).Should(BeTrue())
	w.Expect(w.redisClient().Get(t.Context(), key).Val()).To(BeElementOf("somebody else", ""))
	w.Eventually(func() int64 { return w.east.lock("jobs").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	w.east.runs("jobs", 0)
	ledger.Verdict(t, w.ledger)
}

// C23: the key is gone and nobody came between.
func TestAHolderWhoseKeyVanishedStaysWithAHigherToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	holder := w.east.runs("jobs", 0)
	before := w.east.holds("jobs")
	w.Expect(w.redisClient().FlushAll(t.Context()).Err()).To(Succeed())
	w.Eventually(func() int64 { return w.east.lock("jobs").Status.FencingToken }, within, look).
		Should(BeNumerically(">", before.Status.FencingToken))
	after := w.east.holds("jobs")
	w.Expect(after.Status.Holder.UID).To(Equal(holder.UID))
	w.Eventually(func() string { return w.east.pod(holder.Name).Annotations[lockv1alpha1.AnnotationFencingToken] }, within, look).
		ShouldNot(Equal(holder.Annotations[lockv1alpha1.AnnotationFencingToken]))
	w.Expect(w.east.pod(holder.Name).Status.ContainerStatuses[0].RestartCount).To(BeZero())
	ledger.Verdict(t, w.ledger)
}

// C31: deletion asked for is not death. The process ignores SIGTERM for as long as it may.
func TestNobodyStartsBeforeTheHolderHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	stubborn := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, "-ignore-term")
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](4)
	}
	w.east.exclusive("jobs", 2, stubborn)
	first := w.east.runs("jobs", 1)
	w.east.remove(first.Name)
	w.Eventually(func() bool { return w.east.pod(first.Name) == nil }, within, look).Should(BeTrue())
	w.east.runs("jobs", 1)
	ledger.Verdict(t, w.ledger)
}

func TestAForceDeletedHolderIsNotReplacedBeforeItsGraceIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2, func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, "-ignore-term")
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](4)
	})
	first := w.east.runs("jobs", 1)
	held := w.east.holds("jobs")
	w.east.remove(first.Name, client.GracePeriodSeconds(0))
	w.Eventually(func() int64 { return w.east.lock("jobs").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	w.east.runs("jobs", 1)
	ledger.Verdict(t, w.ledger)
}

func TestADeletedLockStopsItsHolderAndFreesTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	first := w.east.runs("jobs", 0)
	key := w.redisKey(w.east, "jobs")
	w.Expect(w.east.client.Delete(t.Context(), w.east.lock("jobs"))).To(Succeed())
	w.Eventually(func() bool { return w.east.pod(first.Name) == nil }, within, look).Should(BeTrue())
	w.Eventually(func() int64 { return w.redisClient().Exists(t.Context(), key).Val() }, within, look).Should(BeZero())
	ledger.Verdict(t, w.ledger)
}

func TestAnOperatorsReleaseHandsOverOnlyThePresentTenure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2)
	first := w.east.runs("jobs", 1)
	held := w.east.holds("jobs")
	w.east.annotate("jobs", lockv1alpha1.AnnotationRelease, "1")
	w.Eventually(w.east.events, within, look).Should(HaveKey("OrderIgnored"))
	w.east.annotate("jobs", lockv1alpha1.AnnotationRelease, first.Annotations[lockv1alpha1.AnnotationFencingToken])
	w.Eventually(func() int64 { return w.east.lock("jobs").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	w.Expect(w.east.holds("jobs").Status.History[0].Reason).To(Equal(string(lockv1alpha1.ReasonReleaseRequested)))
	ledger.Verdict(t, w.ledger)
}
