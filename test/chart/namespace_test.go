package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conch-dev/conch/test/cluster"
)

// built is what config/default makes of a copy of config/, with conch's namespace changed where it stands once.
func built(t *testing.T, namespace string) string {
	t.Helper()
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(config, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(config, "namespace/namespace.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "name: conch-system", "name: "+namespace, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := cluster.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "kustomize", filepath.Join(config, "default")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// sorted is the objects of a manifest in an order of their own.
func sorted(manifest string) []string {
	return slices.Sorted(slices.Values(strings.Split(strings.TrimSpace(manifest), "\n---\n")))
}

// The policies name conch's namespace and service account, so they have to follow.
func TestTheNamespaceOfAKustomizationStandsInOnePlace(t *testing.T) {
	t.Parallel()
	usual := built(t, "conch-system")
	want := sorted(strings.ReplaceAll(usual, "conch-system", "locks"))
	if got := sorted(built(t, "locks")); !slices.Equal(got, want) {
		t.Errorf("in the namespace locks\n%s\nwant\n%s", strings.Join(got, "\n---\n"), strings.Join(want, "\n---\n"))
	}
	if n := strings.Count(usual, "system:serviceaccount:conch-system:conch"); n < 6 {
		t.Errorf("%d expressions name the service account, want 6 at least", n)
	}
}

func TestAChartInAnotherNamespaceNamesItsOwnServiceAccount(t *testing.T) {
	t.Parallel()
	out, err := helm(t, "/dev/null", "template", "conch", "charts/conch", "--namespace", "locks")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(out, "conch-system") {
		t.Errorf("conch-system is still in it:\n%s", out)
	}
	if n := strings.Count(out, "system:serviceaccount:locks:conch"); n < 6 {
		t.Errorf("%d expressions name the service account, want 6 at least", n)
	}
}
