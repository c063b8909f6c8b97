// Package chart tries the Helm chart with the real Helm on a real API server.
package chart

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conch-dev/conch/test/cluster"
)

var clusters cluster.Pair

func TestMain(m *testing.M) { os.Exit(clusters.Around(m).Run()) }

// helm runs the pinned Helm against a cluster and returns what it wrote.
func helm(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "bin/tools/helm")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("Helm is missing, run make tools: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = root
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheChartInstallsWhatTheKustomizationDoesAndUpgradesWithoutADifference(t *testing.T) {
	t.Parallel()
	east, _ := clusters.Start(t)
	install := []string{"upgrade", "--install", "conch", "charts/conch", "--namespace", "conch-system", "--create-namespace"}
	if out, err := helm(t, east.Kubeconfig(), install...); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	before := objects(t, east)
	for _, want := range []string{
		"deployment.apps/conch", "serviceaccount/conch", "poddisruptionbudget.policy/conch", "configmap/conch-config",
	} {
		if !strings.Contains(before, want) {
			t.Errorf("%s is not there:\n%s", want, before)
		}
	}
	if _, err := east.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=30s", "crd/distributedlocks.conch.dev"); err != nil {
		t.Error(err)
	}
	if out, err := helm(t, east.Kubeconfig(), install...); err != nil {
		t.Fatalf("upgrade: %v\n%s", err, out)
	}
	if after := objects(t, east); after != before {
		t.Errorf("an upgrade with the same values changed objects:\n%s\nthen\n%s", before, after)
	}
	if out, err := helm(t, east.Kubeconfig(), "uninstall", "conch", "--namespace", "conch-system", "--wait"); err != nil {
		t.Fatalf("uninstall: %v\n%s", err, out)
	}
	if _, err := east.Kubectl(t.Context(), "get", "crd", "distributedlocks.conch.dev"); err != nil {
		t.Errorf("uninstalling took the CRD, and the locks with it: %v", err)
	}
}

// objects lists what the release made, with generations, so that a change shows.
func objects(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), "-n", "conch-system", "get", "deployments,serviceaccounts,poddisruptionbudgets,configmaps,roles,rolebindings",
		"-o", `jsonpath={range .items[*]}{.kind}{"/"}{.metadata.name}{" "}{.metadata.generation}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"Deployment/", "deployment.apps/", "ServiceAccount/", "serviceaccount/", "PodDisruptionBudget/", "poddisruptionbudget.policy/", "ConfigMap/", "configmap/",
	).Replace(out)
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ set, want string }{
		"a value that is none":  {"replcas=3", "replcas"},
		"no replica":            {"replicas=0", "replicas"},
		"an image without name": {"image.repository=", "repository"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := helm(t, "/dev/null", "template", "conch", "charts/conch", "--set", tc.set)
			if err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("%v, and no word of %s:\n%s", err, tc.want, out)
			}
		})
	}
}

func TestTheChartIsCleanForHelm(t *testing.T) {
	t.Parallel()
	if out, err := helm(t, "/dev/null", "lint", "--strict", "charts/conch"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The configuration that the chart writes by default is one that conch takes.
func TestTheChartsConfigurationIsOneThatConchTakes(t *testing.T) {
	t.Parallel()
	out, err := helm(t, "/dev/null", "template", "conch", "charts/conch", "--show-only", "templates/deployment.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, rest, found := strings.Cut(out, "conch.yaml: |\n")
	config, _, ended := strings.Cut(rest, "\n---")
	if !found || !ended {
		t.Fatalf("no configuration in\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "conch.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "\n    ", "\n")[4:]), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "run", "./cmd/conch", "check-config", file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, config)
	}
}
