package nodeagent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/conch-dev/conch/test/cluster"
)

// workerBuild builds test/worker once per test binary.
var workerBuild = sync.OnceValues(buildWorker)

// Worker returns the path of the program test/worker, for use as a container's command.
func Worker(t testing.TB) string {
	t.Helper()
	path, err := workerBuild()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildWorker puts the program in place by a rename, because another test binary may be running the one that is there.
func buildWorker() (string, error) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "test", "worker")
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	build := exec.Command("go", "build", "-o", fresh, "./test/worker")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the worker: %w: %s", err, out)
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("put the worker in place: %w", err)
	}
	return path, nil
}
