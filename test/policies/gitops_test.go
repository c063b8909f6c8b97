package policies

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/test/cluster"
)

// declared is what a user keeps in Git: three kinds, with %s for the annotations.
const declared = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {%[1]s}}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: c, image: c}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {%[1]s}}
spec:
  serviceName: db
  selector: {matchLabels: {app: b}}
  template:
    metadata: {labels: {app: b}}
    spec: {containers: [{name: c, image: c}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {%[1]s}}
spec:
  schedule: "0 0 1 1 *"
  timeZone: Etc/UTC
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: c, image: c}]}
`

const annotated = "conch.dev/singleton: exclusive"

func (s *stage) kubectl(args ...string) (string, error) {
	return s.cluster.Kubectl(s.t.Context(), append([]string{"-n", s.ns}, args...)...)
}

// generations are those of the three workloads and the number of ReplicaSets: a rollout adds to both.
func (s *stage) generations() string {
	s.t.Helper()
	out, err := s.kubectl("get", "deployment/web", "statefulset/db", "cronjob/nightly", "-o", "jsonpath={range .items[*]}{.kind}={.metadata.generation} {end}")
	s.Expect(err).NotTo(HaveOccurred())
	sets, err := s.kubectl("get", "replicasets", "-o", "name")
	s.Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%sReplicaSets=%d", out, strings.Count(sets, "replicaset"))
}

func (s *stage) file(content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "declared.yaml")
	s.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func TestApplyingTheSameManifestTwiceMakesNoDifferenceAndNoRollout(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"client side": nil, "server side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			path := s.file(fmt.Sprintf(declared, annotated))
			with := func(verb string) []string { return append([]string{verb, "-f", path}, flags...) }
			_, err := s.kubectl(with("apply")...)
			s.Expect(err).NotTo(HaveOccurred())
			s.Eventually(s.generations, within, look).Should(HaveSuffix("ReplicaSets=1"))
			before := s.generations()
			out, err := s.kubectl(with("diff")...)
			s.Expect(err).NotTo(HaveOccurred(), out)
			_, err = s.kubectl(with("apply")...)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(s.generations()).To(Equal(before))

			// Taking the annotation out of the manifest takes the marks out of the template, in one rollout.
			Expect := NewWithT(t).Expect
			Expect(os.WriteFile(path, []byte(fmt.Sprintf(declared, "")), 0o600)).To(Succeed())
			_, err = s.kubectl(with("apply")...)
			Expect(err).NotTo(HaveOccurred())
			s.Eventually(s.generations, within, look).Should(HaveSuffix("ReplicaSets=2"))
			out, err = s.kubectl("get", "deployment/web", "statefulset/db", "-o", "jsonpath={.items[*].spec.template.metadata}")
			Expect(err).NotTo(HaveOccurred())
			Expect(out).NotTo(ContainSubstring("conch.dev"))
			out, err = s.kubectl(with("diff")...)
			Expect(err).NotTo(HaveOccurred(), out)
		})
	}
}

func TestAnnotatingByHandIsOneRolloutAndSoIsTakingItBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	_, err := s.kubectl("apply", "-f", s.file(fmt.Sprintf(declared, "")))
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(s.generations, within, look).Should(HaveSuffix("ReplicaSets=1"))
	for i, change := range []string{annotated, annotated, "conch.dev/singleton: leader", ""} {
		arg := strings.ReplaceAll(change, ": ", "=")
		if arg == "" {
			arg = "conch.dev/singleton-"
		}
		_, err := s.kubectl("annotate", "--overwrite", "deployment/web", "statefulset/db", "cronjob/nightly", arg)
		s.Expect(err).NotTo(HaveOccurred())
		sets := []int{2, 2, 3, 3}[i] // unmarked again is the first template again
		s.Eventually(s.generations, within, look).Should(HaveSuffix(fmt.Sprintf("ReplicaSets=%d", sets)))
	}
	out, err := s.kubectl("get", "deployment/web", "statefulset/db", "cronjob/nightly", "-o", "jsonpath={.items[*].spec}")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(out).NotTo(ContainSubstring("conch.dev"))
}

func TestUpgradingAHelmReleaseTwiceMakesNoDifferenceAndNoRollout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	root, err := cluster.ModuleRoot()
	s.Expect(err).NotTo(HaveOccurred())
	chart, home := t.TempDir(), t.TempDir()
	s.Expect(os.Mkdir(filepath.Join(chart, "templates"), 0o755)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n"), 0o600)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(chart, "templates", "all.yaml"), []byte(fmt.Sprintf(declared, annotated)), 0o600)).To(Succeed())
	upgrade := func(flags ...string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin/tools/helm"), append([]string{"upgrade", "--install", "app", chart, "-n", s.ns}, flags...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		out, err := cmd.CombinedOutput()
		s.Expect(err).NotTo(HaveOccurred(), "run make tools if Helm is missing: %s", out)
	}
	upgrade()
	s.Eventually(s.generations, within, look).Should(HaveSuffix("ReplicaSets=1"))
	before := s.generations()
	upgrade()
	s.Expect(s.generations()).To(Equal(before))
	out, err := s.kubectl("diff", "-f", filepath.Join(chart, "templates", "all.yaml"))
	s.Expect(err).NotTo(HaveOccurred(), out)
}

// What is unmarked, and what is in kube-system, is as if there were no policies (C117).
func TestWhatIsUnmarkedOrInKubeSystemIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, doc := range []string{workload("Deployment", "name: a", "", "", ""), job("name: a", "", ""), cronJob("name: a", "", "", ""), pod("name: a", plainSpec)} {
		o := s.admin.made(doc)
		raw, err := o.MarshalJSON()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(string(raw)).NotTo(ContainSubstring("conch.dev"))
	}
	for _, ns := range []string{"kube-system", "conch-system"} {
		o := s.root.object(workload("Deployment", "generateName: test-, annotations: {conch.dev/singelton: leader, conch.dev/singleton: exclusive, conch.dev/key: k}",
			"replicas: 0, ", ", conch.dev/role: leader", ""))
		o.SetNamespace(ns)
		s.Expect(s.root.Create(t.Context(), o)).To(Succeed())
		s.Expect(template(o, "spec", "template")).To(Equal("- - -"))
		s.Expect(s.root.Delete(t.Context(), o)).To(Succeed())
	}
}

// Whatever the policies guard can be deleted, with finalizers and without conch (C121).
func TestWhatWaitsCanBeDeletedAndItsFinalizersTakenAway(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, o := range []*unstructured.Unstructured{s.waiting("a"), s.suspended("a")} {
		s.Expect(s.admin.merge(o, "{metadata: {finalizers: [example.com/f]}}")).To(Succeed())
		s.Expect(s.admin.Delete(t.Context(), o, client.PropagationPolicy("Background"))).To(Succeed())
		s.Expect(s.root.now(o).GetDeletionTimestamp()).NotTo(BeNil())
		s.Expect(s.admin.merge(o, "{metadata: {finalizers: null}}")).To(Succeed())
		s.Eventually(func() error { return client.IgnoreNotFound(s.root.Get(t.Context(), client.ObjectKeyFromObject(o), o)) }, within, look).Should(Succeed())
	}
}
