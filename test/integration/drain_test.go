package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

func TestADrainedClusterHandsOverWhatAnotherOneWaitsForAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east := w.east.conch(1)[0]
	w.west.conch(1)
	for _, name := range []string{"wanted", "lonely"} {
		w.east.newLock(name)
		w.east.exclusive(name, 1)
		w.east.holds(name)
	}
	w.west.newLock("wanted")
	w.west.exclusive("wanted", 1)
	w.west.says("wanted", lockv1alpha1.ConditionHeld, "False HeldElsewhere")

	w.Expect(east.Configure("contend: false\n")).To(Succeed())
	w.west.holds("wanted")
	w.west.runs("wanted", 0)
	w.Consistently(func() string { return describe(w.east.lock("lonely")) }, 2*time.Second, look).Should(HavePrefix("Held by " + w.east.id() + " started"))
	w.Expect(w.east.lock("wanted").Status.State).NotTo(Equal(lockv1alpha1.StateHeld))

	// Nothing new is taken either.
	w.east.newLock("new")
	w.east.exclusive("new", 1)
	w.east.says("new", lockv1alpha1.ConditionHeld, "False Draining")
	ledger.Verdict(t, w.ledger)
}

func TestAHolderThatNeverRunsGivesWayToAnotherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.west.conch(1)
	short := func(s *lockv1alpha1.DistributedLockSpec) {
		s.StartDeadline = &metav1.Duration{Duration: 3 * time.Second}
	}
	w.east.newLock("jobs", short)
	w.east.exclusive("jobs", 1, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Command = []string{"sh", "-c", "exit 3"} })
	w.east.holds("jobs")
	w.west.newLock("jobs", short)
	w.west.exclusive("jobs", 1)
	w.west.runs("jobs", 0)
	w.west.holds("jobs")
	ledger.Verdict(t, w.ledger)
}
