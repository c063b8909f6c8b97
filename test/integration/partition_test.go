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

// A node that is cut off for a moment stays Ready, and its kubelet learns only when it is back that a
// pod was deleted by force: the first heartbeat then is where the pod's grace begins, not its end.
func TestAForceDeletedHolderOnANodeThatWasCutOffIsGivenItsGraceFromTheReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs", ttl(60), func(s *lockv1alpha1.DistributedLockSpec) { s.FenceGrace = seconds(1) })
	w.east.exclusive("jobs", 2, func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, "-ignore-term")
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
	})
	first := w.east.runs("jobs", 1)
	held := w.east.holds("jobs")
	w.east.agent.Partition(first.Spec.NodeName)
	w.east.remove(first.Name, client.GracePeriodSeconds(0))
	// Longer than grace and fenceGrace, shorter than the node controller's patience of four seconds.
	w.Consistently(func() int64 { return w.east.lock("jobs").Status.FencingToken }, 3300*time.Millisecond, look).Should(Equal(held.Status.FencingToken))
	w.east.agent.Heal(first.Spec.NodeName)
	w.Eventually(func() int64 { return w.east.lock("jobs").Status.FencingToken }, within, look).
		Should(BeNumerically(">", held.Status.FencingToken))
	w.east.runs("jobs", 1)
	ledger.Verdict(t, w.ledger)
}
