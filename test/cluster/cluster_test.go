package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/conch-dev/conch/test/cluster"
)

// soon bounds what should happen within moments, on a busy machine.
const soon = 30 * time.Second

var clusters cluster.Pair

func TestMain(m *testing.M) { goleak.VerifyTestMain(clusters.Around(m)) }

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: web}]}
`

const reader = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NS}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: NS}]
`

func in(ns, yaml string) string { return strings.ReplaceAll(yaml, "NS", ns) }

func TestTheControllerManagerMakesThePodsOfADeployment(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	east, _ := clusters.Start(t)
	ns := cluster.Namespace(t, east)

	g.Expect(east.Apply(t.Context(), in(ns, deployment))).To(Succeed())

	client := kubernetes.NewForConfigOrDie(east.Config())
	g.Eventually(func() ([]corev1.Pod, error) {
		pods, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		return pods.Items, err
	}, soon).Should(HaveLen(2))
}

func TestADirectoryIsAppliedWhole(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	east, _ := clusters.Start(t)
	ns := cluster.Namespace(t, east)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(in(ns, deployment)), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "b.yaml"), []byte(in(ns, reader)), 0o600)).To(Succeed())

	g.Expect(east.ApplyDir(t.Context(), dir)).To(Succeed())

	out, err := east.Kubectl(t.Context(), "get", "deployment,serviceaccount", "-n", ns, "-o", "name")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(ContainSubstring("deployment.apps/web"), ContainSubstring("serviceaccount/reader")))
}

func TestTheClustersOfAPairAreApart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	east, west := clusters.Start(t)
	ns := cluster.Namespace(t, east)

	_, err := west.Kubectl(t.Context(), "get", "namespace", ns)

	g.Expect(err).To(MatchError(ContainSubstring("NotFound")))
}

func TestAServiceAccountHasItsOwnRightsAndItsOwnAuditLines(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	east, _ := clusters.Start(t)
	ns := cluster.Namespace(t, east)
	g.Expect(east.Apply(t.Context(), in(ns, reader))).To(Succeed())
	path, err := east.KubeconfigFor(t.Context(), ns, "reader")
	g.Expect(err).NotTo(HaveOccurred())
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(HaveOccurred())
	client := kubernetes.NewForConfigOrDie(cfg)
	mark, err := east.AuditMark()
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	g.Eventually(func() error { // RBAC rules reach the authorizer through a watch
		_, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), made, metav1.CreateOptions{})
		return err
	}, soon).Should(Succeed())

	user := "system:serviceaccount:" + ns + ":reader"
	g.Eventually(func() ([]cluster.AuditEvent, error) {
		return east.AuditSince(mark, func(e cluster.AuditEvent) bool { return cluster.Writes(user)(e) && e.Code < 300 })
	}, soon).Should(ConsistOf(And(
		HaveField("Verb", "create"), HaveField("Resource", "configmaps"), HaveField("Namespace", ns), HaveField("Name", "made"))))
}

func TestTheAPIServerComesBackOnItsPortWithItsData(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "away"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.Stop)
	ns := cluster.Namespace(t, c)
	cfg := c.Config()
	cfg.Timeout = time.Second
	client := kubernetes.NewForConfigOrDie(cfg)
	get := func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err
	}

	g.Expect(c.PauseAPIServer()).To(Succeed())
	// A thread on another processor may still answer one request while the signal arrives.
	g.Eventually(get, soon).Should(MatchError(context.DeadlineExceeded), "a paused API server does not answer")
	g.Expect(c.ResumeAPIServer()).To(Succeed())
	g.Eventually(get, soon).Should(Succeed())

	c.StopAPIServer()
	g.Expect(get()).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(c.StartAPIServer(t.Context())).To(Succeed())
	g.Eventually(get, soon).Should(Succeed())
}

func TestMissingBinariesSayHowToBuildThem(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("CONCH_CONTROLPLANE", t.TempDir())

	_, err := cluster.Start(t.Context(), cluster.Options{Name: "none"})

	g.Expect(err).To(MatchError(ContainSubstring("make controlplane")))
}
