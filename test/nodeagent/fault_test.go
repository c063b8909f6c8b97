package nodeagent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/conch-dev/conch/test/nodeagent"
)

func nodeReady(status corev1.ConditionStatus) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", status))))
}

func TestAPartitionedNodeIsLostWhileItsProcessesLive(t *testing.T) {
	b := newBed(t)
	b.create(script("far", forever))
	pod := b.ready("far")
	pid := pidOf(t, pod)

	b.agent.Partition(pod.Spec.NodeName)
	cut := time.Now()
	b.Eventually(b.node(pod.Spec.NodeName)).Should(nodeReady(corev1.ConditionUnknown))
	t.Logf("lost after %s", time.Since(cut).Round(time.Millisecond))
	b.delete("far", 1)
	b.Consistently(alive(pid), 2*time.Second).Should(BeTrue(), "the node does not hear of the deletion")
	b.Expect(b.pod("far")()).To(HaveField("DeletionTimestamp", Not(BeNil())), "nobody confirms it")

	b.agent.Heal(pod.Spec.NodeName)
	b.Eventually(b.gone("far")).Should(BeTrue())
	b.Expect(alive(pid)()).To(BeFalse())
	b.Eventually(b.node(pod.Spec.NodeName)).Should(nodeReady(corev1.ConditionTrue))
}

func TestARebootChangesTheBootIDAndRestartsThePod(t *testing.T) {
	b := newBed(t)
	b.create(script("rebooted", stubborn))
	pod := b.ready("rebooted")
	pid := pidOf(t, pod)
	before, err := b.node(pod.Spec.NodeName)()
	b.Expect(err).NotTo(HaveOccurred())

	b.Expect(b.agent.PowerOff(t.Context(), pod.Spec.NodeName)).To(Succeed())
	b.Expect(alive(pid)()).To(BeFalse())
	b.Expect(b.pod("rebooted")()).To(beReady(), "nobody told the API server")
	b.agent.PowerOn(pod.Spec.NodeName)

	b.Eventually(b.node(pod.Spec.NodeName)).Should(HaveField("Status.NodeInfo.BootID", Not(Equal(before.Status.NodeInfo.BootID))))
	b.Eventually(b.pod("rebooted")).Should(And(beReady(), HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(1))))))
}

func TestAPodForceDeletedWhileItsNodeIsOffDoesNotComeBack(t *testing.T) {
	marks := filepath.Join(t.TempDir(), "marks")
	b := newBed(t)
	b.create(script("erased", "echo run >>"+marks+"; "+forever))
	node := b.ready("erased").Spec.NodeName
	b.Expect(b.agent.PowerOff(t.Context(), node)).To(Succeed())
	b.delete("erased", 0)
	b.create(script("probe", forever, func(p *corev1.Pod) { p.Spec.NodeName = node }))

	b.agent.PowerOn(node)

	b.ready("probe")
	b.Expect(os.ReadFile(marks)).To(Equal([]byte("run\n")))
}

func TestAPausedPodStandsStill(t *testing.T) {
	beat := filepath.Join(t.TempDir(), "beat") // before the bed, so that it goes after the writer
	b := newBed(t)
	b.create(script("frozen-1", "while :; do echo . >>"+beat+"; sleep 0.02; done"))
	b.ready("frozen-1")
	size := func() int64 {
		info, err := os.Stat(beat)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	b.Eventually(size).Should(BeNumerically(">", 0))

	b.agent.Pause("frozen-*")
	stood := size()
	b.Consistently(size).Should(BeNumerically("<=", stood+2), "one write may have been on its way")

	b.agent.Resume("frozen-*")
	b.Eventually(size).Should(BeNumerically(">", stood+2))
}

func TestASlowStopOutlivesItsGrace(t *testing.T) {
	b := newBed(t)
	b.agent.SlowStop("slow", 2*time.Second)
	b.create(script("slow", forever))
	pid := pidOf(t, b.ready("slow"))

	b.delete("slow", 1)

	b.Consistently(alive(pid), 1700*time.Millisecond).Should(BeTrue())
	b.Eventually(b.gone("slow")).Should(BeTrue())
}

func TestAPodThatNeverStartsStartsOnceItMay(t *testing.T) {
	b := newBed(t)
	b.agent.NeverStart("stuck-*")
	b.create(script("stuck-1", forever))
	b.Eventually(b.pod("stuck-1")).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Waiting.Reason", "ContainerCreating"))))
	b.Consistently(b.pod("stuck-1")).Should(inPhase(corev1.PodPending))

	b.agent.MayStart("stuck-*")

	b.ready("stuck-1")
}

func TestPretendedPodsLiveAndDieInTheAPIOnly(t *testing.T) {
	b := newBed(t, func(o *nodeagent.Options) {
		o.Runtime = nodeagent.None{Life: func(pod *corev1.Pod, _ string) (time.Duration, int32) {
			if pod.Name == "short" {
				return 50 * time.Millisecond, 0
			}
			return 0, 0
		}}
	})
	b.create(script("short", "", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
	b.create(script("long", ""))

	b.Eventually(b.pod("short")).Should(inPhase(corev1.PodSucceeded))
	b.ready("long")
	b.delete("long", 5)
	b.Eventually(b.gone("long")).Should(BeTrue())
}
