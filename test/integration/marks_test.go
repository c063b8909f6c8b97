package integration

import (
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// unmarked creates a Deployment of one pod that knows nothing of conch.
func (s *side) unmarked(name string, flags ...string) {
	t := s.workload(name, "")
	t.Labels, t.Annotations, t.Spec.SchedulingGates = map[string]string{"app": name}, nil, nil
	t.Spec.Containers[0].Command = append(t.Spec.Containers[0].Command, flags...)
	t.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	s.deployment(name, 1, t, rolling, func(d *appsv1.DeploymentSpec) { d.RevisionHistoryLimit = ptr.To[int32](500) })
}

// kubectlAnnotate is what a user types, with `-` behind a key to take it away.
func (s *side) kubectlAnnotate(deployment string, annotations ...string) {
	s.w.t.Helper()
	args := append([]string{"-n", s.w.ns, "annotate", "--overwrite", "deployment", deployment}, annotations...)
	_, err := s.cluster.Kubectl(s.w.t.Context(), args...)
	s.w.Expect(err).NotTo(HaveOccurred())
}

// rollouts is how often a Deployment was rolled out, the first time included.
func (s *side) rollouts(name string) string {
	s.w.t.Helper()
	var d appsv1.Deployment
	s.w.Expect(s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &d)).To(Succeed())
	return d.Annotations["deployment.kubernetes.io/revision"]
}

// runsAs waits until a Deployment's only pod runs in a mode, and its rollout is over.
func (s *side) runsAs(name, mode string) {
	s.w.t.Helper()
	s.w.Eventually(func() string {
		var seen string
		for _, p := range s.pods(name) {
			if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
				return fmt.Sprintf("%s is %s", p.Name, p.Status.Phase)
			}
			seen += "/" + p.Labels[lockv1alpha1.LabelSingleton]
		}
		return seen
	}, within, look).Should(Equal("/"+mode), func() string { return describe(s.lock("deployment-" + name)) })
	s.rolledOut("deployment", name)
}

func TestAnnotatingAndUnannotatingOverAndOverNeverOverlapsAndRollsOutOnceEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("deployment-web")
	w.east.unmarked("web", "-unmanaged")
	w.east.runsAs("web", "")
	for range rounds(2, 50) {
		w.east.kubectlAnnotate("web", "conch.dev/singleton=exclusive")
		w.east.runsAs("web", lockv1alpha1.SingletonExclusive)
		w.east.holds("deployment-web")
		// Without the mark nothing waits for anything: the rollout starts the new pod beside the old one, unless the strategy says otherwise.
		w.east.kubectlAnnotate("web", "conch.dev/singleton-")
		w.east.runsAs("web", "")
	}
	w.Expect(w.east.rollouts("web")).To(Equal(strconv.Itoa(1 + 2*rounds(2, 50))))
	overlapsOnlyAfterUnmarking(w)
}

// overlapsOnlyAfterUnmarking checks that no marked worker started while another one worked.
func overlapsOnlyAfterUnmarking(w *world) {
	w.t.Helper()
	entries, err := w.ledger.Entries()
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range ledger.Overlaps(ledger.Intervals(entries)) {
		w.Expect(o.Second.Unmanaged).To(BeTrue(), fmt.Sprintf("%+v", o))
	}
}

func TestTheModeOfARunningDeploymentChangesOverAndOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	oracle := w.east.watchLeaders()
	w.east.newLock("deployment-web")
	w.east.unmarked("web", "-quiet")
	w.east.runsAs("web", "")
	for range rounds(1, 50) {
		for _, mode := range []string{lockv1alpha1.SingletonExclusive, lockv1alpha1.SingletonLeader, lockv1alpha1.SingletonActivePassive} {
			w.east.kubectlAnnotate("web", "conch.dev/singleton="+mode)
			w.east.runsAs("web", mode)
			w.east.holds("deployment-web")
		}
	}
	w.Expect(w.east.rollouts("web")).To(Equal(strconv.Itoa(1 + 3*rounds(1, 50))))
	ledger.Verdict(t, w.ledger, oracle)
}
