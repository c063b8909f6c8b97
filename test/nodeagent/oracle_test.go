package nodeagent_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/nodeagent"
)

const tokenAnnotation = "conch.dev/fencing-token"

// worker is a pod that runs test/worker as the only thing.
func worker(name, program string, token int64, args ...string) *corev1.Pod {
	return script(name, "", func(p *corev1.Pod) {
		p.Annotations = map[string]string{tokenAnnotation: fmt.Sprint(token)}
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		main := &p.Spec.Containers[0]
		main.Command, main.Args = []string{program}, args
		main.Env = []corev1.EnvVar{
			{Name: "CONCH_KEY", Value: "k"}, {Name: "CONCH_CLUSTER", Value: "east"},
			field("POD_UID", "metadata.uid"), field("POD_NAME", "metadata.name"),
			field("CONCH_FENCING_TOKEN", "metadata.annotations['"+tokenAnnotation+"']"),
		}
		p.Spec.Volumes = []corev1.Volume{{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{
				Path: "token", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + tokenAnnotation + "']"}}}}}}}
		main.VolumeMounts = []corev1.VolumeMount{{Name: "info", MountPath: "/etc/conch"}}
	})
}

// runsOf counts the starts in the ledger.
func runsOf(l *ledger.Ledger) func() (int, error) {
	return func() (int, error) {
		entries, err := l.Entries()
		return len(ledger.Intervals(entries)), err
	}
}

func withLedger(l *ledger.Ledger) func(*nodeagent.Options) {
	return func(o *nodeagent.Options) { o.Runtime = nodeagent.Processes{OnExit: l.Exited} }
}

func TestTheLedgerIsCleanWhenTheNextHolderWaitsForTheDeathOfTheLast(t *testing.T) {
	l := ledger.New(t)
	b := newBed(t, withLedger(l))
	program := nodeagent.Worker(t)
	b.create(worker("first", program, 5, "exclusive", "-ledger", l.Path(), "-ignore-term"))
	b.Eventually(runsOf(l)).Should(Equal(1))

	b.delete("first", 1) // SIGKILL will end it: the runtime has to note the end
	b.Eventually(b.gone("first")).Should(BeTrue())
	b.create(worker("second", program, 6, "exclusive", "-ledger", l.Path(), "-run-for", "100ms"))
	b.Eventually(b.pod("second")).Should(inPhase(corev1.PodSucceeded))

	b.Expect(runsOf(l)()).To(Equal(2))
	ledger.Verdict(t, l)
}

func TestTheLedgerFindsASuccessorThatDidNotWait(t *testing.T) {
	l := ledger.New(t)
	b := newBed(t, withLedger(l))
	program := nodeagent.Worker(t)
	b.create(worker("first", program, 5, "exclusive", "-ledger", l.Path(), "-stop-takes", "1s"))
	b.Eventually(runsOf(l)).Should(Equal(1))

	b.delete("first", 20)
	b.create(worker("second", program, 4, "exclusive", "-ledger", l.Path()))
	b.Eventually(runsOf(l)).Should(Equal(2))

	err := l.Check()
	b.Expect(err).To(MatchError(ContainSubstring("ran at the same time")))
	b.Expect(err).To(MatchError(ContainSubstring("did not rise")))
}

func TestALeaderActsByItsFile(t *testing.T) {
	b := newBed(t)
	w := ledger.StartWitness(t)
	program := nodeagent.Worker(t)
	b.create(worker("old", program, 5, "leader", "-witness", w.Addr()))
	b.create(worker("new", program, 0, "leader", "-witness", w.Addr()))
	accepted := func() []ledger.Span { return w.Spans("k") }
	b.Eventually(accepted).Should(ConsistOf(And(HaveField("Token", int64(5)), HaveField("Count", BeNumerically(">", 3)))))
	token := func(pod, value string) {
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, tokenAnnotation, value)
		_, err := b.client.CoreV1().Pods(b.ns).Patch(t.Context(), pod, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		b.Expect(err).NotTo(HaveOccurred())
	}

	b.agent.Pause("old") // as good as a partition: it does not read its file
	token("old", "")
	token("new", "6")
	b.Eventually(accepted).Should(ContainElement(And(HaveField("Token", int64(6)), HaveField("Accepted", true))))
	ledger.Verdict(t, w, w.Strict())

	token("old", "5") // it wakes and still believes
	b.agent.Resume("old")
	b.Eventually(accepted).Should(ContainElement(And(HaveField("Token", int64(5)), HaveField("Accepted", false))))
	b.Expect(w.Strict().Check()).To(MatchError(ContainSubstring("came too late")))
	ledger.Verdict(t, w)
}

func TestThePauseOfAProcessOutlivesItsSIGTERM(t *testing.T) {
	l := ledger.New(t)
	b := newBed(t, withLedger(l))
	b.create(worker("stiff", nodeagent.Worker(t), 5, "exclusive", "-ledger", l.Path()))
	b.Eventually(runsOf(l)).Should(Equal(1))
	b.agent.Pause("stiff")

	b.delete("stiff", 3)
	deleted := time.Now()

	b.Eventually(b.gone("stiff")).Should(BeTrue())
	b.Expect(time.Since(deleted)).To(BeNumerically(">", 2900*time.Millisecond), "SIGKILL alone reaches it")
	ledger.Verdict(t, l)
}
