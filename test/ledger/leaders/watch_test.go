package leaders_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/ledger/leaders"
)

// soon bounds what should happen within moments, on a busy machine.
const soon = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLabelsAreFollowedOverAnAPIServerThatWasAway(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "leaders"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.Stop)
	client := kubernetes.NewForConfigOrDie(c.Config())
	pods := client.CoreV1().Pods("default")
	for _, name := range []string{"a", "b"} {
		_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	patch := func(name, body string) {
		g.THelper()
		g.Eventually(func() error {
			_, err := pods.Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}, soon).Should(Succeed())
	}
	const (
		lead   = `{"metadata":{"labels":{"conch.dev/role":"leader"},"annotations":{"conch.dev/key":"k","conch.dev/fencing-token":"%"}}}`
		follow = `{"metadata":{"labels":{"conch.dev/role":null}}}`
	)
	patch("a", replace(lead, "5"))
	watched := leaders.Start(t, client, "default")
	patch("a", follow)
	g.Eventually(func() []leaders.Span { return watched.Spans("k") }, soon).Should(ConsistOf(HaveField("To", Not(BeEmpty()))))

	c.StopAPIServer()
	g.Expect(c.StartAPIServer(t.Context())).To(Succeed())
	patch("b", replace(lead, "6"))
	g.Eventually(func() []leaders.Span { return watched.Spans("k") }, soon).Should(HaveLen(2))
	g.Expect(watched.Check()).To(Succeed())

	patch("a", replace(lead, "7"))
	g.Eventually(watched.Check, soon).Should(MatchError(ContainSubstring("both b")))
	t.Logf("gaps: %d", watched.Gaps())
}

func replace(body, token string) string { return strings.Replace(body, "%", token, 1) }
