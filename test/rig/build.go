package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/conch-dev/conch/test/cluster"
)

var building sync.Map // program name -> *built

type built struct {
	once sync.Once
	path string
	err  error
}

// Build compiles a command of this module once per process and returns its path. With race set the
// race detector is built in.
func Build(ctx context.Context, pkg string, race bool) (string, error) {
	entry, _ := building.LoadOrStore(fmt.Sprintf("%s race=%t", pkg, race), &built{})
	b, _ := entry.(*built)
	b.once.Do(func() { b.path, b.err = compile(ctx, pkg, race) })
	return b.path, b.err
}

func compile(ctx context.Context, pkg string, race bool) (string, error) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "conch-bin-")
	if err != nil {
		return "", fmt.Errorf("make a directory for %s: %w", pkg, err)
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// Clean removes what Build made.
func Clean() {
	building.Range(func(_, v any) bool {
		if b, ok := v.(*built); ok && b.path != "" {
			_ = os.RemoveAll(filepath.Dir(b.path))
		}
		return true
	})
}
