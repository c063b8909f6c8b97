package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/ledger/leaders"
)

// leads waits until exactly one pod of a lock bears the leader's label and is the holder.
func (s *side) leads(lock string) corev1.Pod {
	s.w.t.Helper()
	var leader corev1.Pod
	s.w.Eventually(func() []string {
		var names []string
		for _, p := range s.pods(lock) {
			if p.Labels[lockv1alpha1.LabelRole] == lockv1alpha1.RoleLeader {
				names = append(names, p.Name)
				leader = p
			}
		}
		return names
	}, within, look).Should(HaveLen(1), describe(s.lock(lock)))
	s.w.Eventually(func() string {
		if l := s.lock(lock); l != nil && l.Status.Holder != nil {
			return string(l.Status.Holder.UID)
		}
		return ""
	}, within, look).Should(Equal(string(leader.UID)))
	return leader
}

func (s *side) watchLeaders() ledger.Oracle {
	s.w.t.Helper()
	client, err := kubernetes.NewForConfig(s.cluster.Config())
	s.w.Expect(err).NotTo(HaveOccurred())
	return leaders.Start(s.w.t, client, s.w.ns)
}

func TestOneOfThePodsLeadsAndTheNextDoesAfterItsDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	oracle := w.east.watchLeaders()
	w.east.newLock("web")
	w.east.leader("web", 3)
	first := w.east.leads("web")
	held := w.east.holds("web")
	w.Expect(first.Annotations).To(HaveKey(lockv1alpha1.AnnotationFencingToken))
	w.east.remove(first.Name)
	w.Eventually(func() int64 { return w.east.lock("web").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	next := w.east.leads("web")
	w.Expect(next.UID).NotTo(Equal(first.UID))
	ledger.Verdict(t, oracle)
}

func TestADemotedLeaderLosesLabelFirstAndLivesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	oracle := w.east.watchLeaders()
	w.east.newLock("web", func(s *lockv1alpha1.DistributedLockSpec) { s.OnDemote = lockv1alpha1.DemoteDemote })
	w.east.leader("web", 2)
	first := w.east.leads("web")
	held := w.east.holds("web")
	w.east.annotate("web", lockv1alpha1.AnnotationRelease, first.Annotations[lockv1alpha1.AnnotationFencingToken])
	w.Eventually(func() int64 { return w.east.lock("web").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	w.east.leads("web")
	still := w.east.pod(first.Name)
	w.Expect(still).NotTo(BeNil())
	w.Expect(still.DeletionTimestamp).To(BeNil())
	w.Expect(still.Status.ContainerStatuses[0].RestartCount).To(BeZero())
	ledger.Verdict(t, oracle)
}

func TestALeaderWhoseKeySomebodyElseHasIsRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	oracle := w.east.watchLeaders()
	w.east.newLock("web")
	w.east.leader("web", 2)
	first := w.east.leads("web")
	w.east.holds("web")
	w.Expect(w.redisClient().Set(t.Context(), w.redisKey(w.east, "web"), "somebody else", 5*time.Second).Err()).To(Succeed())
	w.Eventually(func() *corev1.Pod { return w.east.pod(first.Name) }, within, look).Should(BeNil())
	w.Expect(w.east.leads("web").UID).NotTo(Equal(first.UID))
	ledger.Verdict(t, oracle)
}
