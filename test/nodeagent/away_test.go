package nodeagent_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"

	"k8s.io/client-go/kubernetes"
)

func TestPodsOutliveAnAPIServerThatIsAway(t *testing.T) {
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "away"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	b := bed{WithT: NewWithT(t), t: t, client: kubernetes.NewForConfigOrDie(c.Config()), ns: cluster.Namespace(t, c)}
	b.SetDefaultEventuallyTimeout(soon)
	b.agent = nodeagent.Start(t, nodeagent.Options{Config: c.AgentConfig(), Namespace: b.ns})
	b.create(script("stays", forever))
	b.create(script("ends", "sleep 2; exit 4", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }))
	pid := pidOf(t, b.ready("stays"))

	c.StopAPIServer()
	b.Consistently(alive(pid), 5*time.Second, 100*time.Millisecond).Should(BeTrue())
	b.Expect(c.StartAPIServer(t.Context())).To(Succeed())
	back := time.Now()

	b.Eventually(b.pod("ends")).Should(And(inPhase(corev1.PodFailed),
		HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Terminated.ExitCode", int32(4))))))
	b.Expect(b.pod("stays")()).To(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(0)))))
	b.Expect(alive(pid)()).To(BeTrue())
	b.delete("stays", 1)
	b.Eventually(b.gone("stays"), time.Minute).Should(BeTrue())
	t.Logf("the agent heard of a deletion %s after the return", time.Since(back).Round(100*time.Millisecond))
}
