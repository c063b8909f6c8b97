package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/rig"
)

// samples says which lock each file of config/samples makes or uses, and whether one of its pods then holds.
// Those of Jobs and of workloads that span clusters are tried in tests of their own.
// Once are those that cannot be applied again: conch has lifted the gate that the file writes by hand, and a
// gate cannot come back; the Job would be suspended.
var samples = map[string]struct {
	lock  string
	holds bool
	once  bool
}{
	"leader-deployment.yaml":         {lock: "mailer", holds: true},
	"leader-service.yaml":            {},
	"exclusive-deployment.yaml":      {lock: "reports", holds: true},
	"exclusive-statefulset.yaml":     {lock: "statefulset-ledger", holds: true},
	"shared-lock.yaml":               {lock: "licence", holds: true},
	"raw-key.yaml":                   {lock: "sync", holds: true},
	"bare-pod.yaml":                  {lock: "pod-once", holds: true, once: true},
	"active-passive-deployment.yaml": {lock: "deployment-billing"},
	"job.yaml":                       {lock: "job-migrate", once: true},
	"cronjob.yaml":                   {lock: "cronjob-nightly"},
}

func TestEverySampleIsAcceptedAndGetsItsLock(t *testing.T) {
	t.Parallel()
	root, err := cluster.ModuleRoot()
	w := newWorld(t)
	w.Expect(err).NotTo(HaveOccurred())
	w.east.conch(1, func(o *rig.Options) {
		o.Extra = "rawKeys: [{namespace: " + w.ns + ", pattern: \"jobs:*\"}]\n"
	})
	files, err := os.ReadDir(filepath.Join(root, "config/samples"))
	w.Expect(err).NotTo(HaveOccurred())
	kubectl := func(args ...string) (string, error) {
		return w.east.cluster.Kubectl(t.Context(), append([]string{"-n", w.ns}, args...)...)
	}
	for _, f := range files {
		if f.Name() == "kustomization.yaml" {
			continue
		}
		want, listed := samples[f.Name()]
		w.Expect(listed).To(BeTrue(), "%s is in no test", f.Name())
		path := filepath.Join(root, "config/samples", f.Name())
		applies := [][]string{{"--dry-run=server"}, nil}
		if !want.once {
			applies = append(applies, nil)
		}
		for _, how := range applies {
			out, err := kubectl(append([]string{"apply", "-f", path}, how...)...)
			w.Expect(err).NotTo(HaveOccurred(), "%s: %s", f.Name(), out)
		}
		if want.lock != "" {
			w.Eventually(func() bool { return w.east.lock(want.lock) != nil }, within, look).Should(BeTrue(), "%s has no lock %s", f.Name(), want.lock)
		}
	}
	for _, want := range samples {
		if want.holds {
			w.east.holds(want.lock)
		}
	}
	out, err := kubectl("kustomize", filepath.Join(root, "config/samples"))
	w.Expect(err).NotTo(HaveOccurred(), out)
	w.Expect(strings.Count(out, "conch.dev/singleton")).To(BeNumerically(">=", len(files)-2))
}

// C97, C121: there is no finalizer that only conch could take away.
func TestWithConchGoneEverythingCanBeDeleted(t *testing.T) {
	t.Parallel()
	root, err := cluster.ModuleRoot()
	w := newWorld(t)
	w.Expect(err).NotTo(HaveOccurred())
	c := w.east.conch(1)[0]
	names := []string{"leader-deployment.yaml", "exclusive-statefulset.yaml", "shared-lock.yaml", "bare-pod.yaml", "job.yaml", "cronjob.yaml"}
	kubectl := func(args ...string) {
		t.Helper()
		out, err := w.east.cluster.Kubectl(t.Context(), append([]string{"-n", w.ns}, args...)...)
		w.Expect(err).NotTo(HaveOccurred(), out)
	}
	for _, name := range names {
		kubectl("apply", "-f", filepath.Join(root, "config/samples", name))
	}
	for _, lock := range []string{"mailer", "statefulset-ledger", "licence", "pod-once"} {
		w.east.holds(lock)
	}
	w.Expect(c.Stop()).To(Succeed())
	for _, name := range names {
		kubectl("delete", "-f", filepath.Join(root, "config/samples", name), "--wait", "--timeout=60s")
	}
	kubectl("delete", "distributedlocks", "--all", "--wait", "--timeout=60s")
	w.Eventually(func() string {
		out, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "get", "pods,jobs,distributedlocks", "-o", "name")
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(out)
	}, within, look).Should(BeEmpty())
}
