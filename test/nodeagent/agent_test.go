package nodeagent_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"
)

const (
	// soon bounds what should happen within moments, on a busy machine.
	soon = 30 * time.Second
	// moment is how long something that must not happen is watched for.
	moment = 700 * time.Millisecond
	every  = 20 * time.Millisecond
)

var clusters cluster.Pair

func TestMain(m *testing.M) { goleak.VerifyTestMain(clusters.Around(m)) }

// bed is a namespace with an agent of its own.
type bed struct {
	*WithT
	t      *testing.T
	client kubernetes.Interface
	ns     string
	agent  *nodeagent.Agent
}

func newBed(t *testing.T, mods ...func(*nodeagent.Options)) bed {
	t.Helper()
	t.Parallel()
	east, _ := clusters.Start(t)
	ns := cluster.Namespace(t, east)
	o := nodeagent.Options{Config: east.AgentConfig(), Namespace: ns}
	for _, mod := range mods {
		mod(&o)
	}
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(soon)
	g.SetDefaultEventuallyPollingInterval(every)
	g.SetDefaultConsistentlyDuration(moment)
	g.SetDefaultConsistentlyPollingInterval(every)
	return bed{WithT: g, t: t, client: kubernetes.NewForConfigOrDie(east.Config()), ns: ns, agent: nodeagent.Start(t, o)}
}

// script is a pod that runs a shell script.
func script(name, text string, mods ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(20)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		Containers:                    []corev1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", text}}},
	}}
	for _, mod := range mods {
		mod(pod)
	}
	return pod
}

// Scripts that the tests use. A shell waits for its foreground child before it obeys a trap, hence the background sleep.
const (
	forever  = `exec sleep 1000`
	stubborn = `trap "" TERM; while :; do sleep 0.1; done`
)

func (b bed) create(pod *corev1.Pod) *corev1.Pod {
	b.t.Helper()
	got, err := b.client.CoreV1().Pods(b.ns).Create(b.t.Context(), pod, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return got
}

// pod reads a pod for Eventually and Consistently.
func (b bed) pod(name string) func() (*corev1.Pod, error) {
	return func() (*corev1.Pod, error) {
		return b.client.CoreV1().Pods(b.ns).Get(b.t.Context(), name, metav1.GetOptions{})
	}
}

// gone tells whether the API has no such pod.
func (b bed) gone(name string) func() bool {
	return func() bool {
		_, err := b.pod(name)()
		return apierrors.IsNotFound(err)
	}
}

func (b bed) node(name string) func() (*corev1.Node, error) {
	return func() (*corev1.Node, error) {
		return b.client.CoreV1().Nodes().Get(b.t.Context(), name, metav1.GetOptions{})
	}
}

func (b bed) delete(name string, grace int64) {
	b.t.Helper()
	b.Expect(b.client.CoreV1().Pods(b.ns).Delete(b.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace})).To(Succeed())
}

// ready waits until a pod is Ready and returns it.
func (b bed) ready(name string) *corev1.Pod {
	b.t.Helper()
	var pod *corev1.Pod
	b.Eventually(b.pod(name)).Should(And(beReady(), WithTransform(func(p *corev1.Pod) string { pod = p; return p.Name }, Equal(name))))
	return pod
}

func beReady() gomegatypes.GomegaMatcher {
	return WithTransform(func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}, BeTrue())
}

func inPhase(phase corev1.PodPhase) gomegatypes.GomegaMatcher {
	return HaveField("Status.Phase", phase)
}
