package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// KubectlPath returns the path of the kubectl that belongs to this cluster's version.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.binaries, kubectlName) }

// Kubectl runs kubectl as cluster-admin and returns its standard output. The error carries what it wrote to standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, "", args...)
}

// Apply applies YAML documents as `kubectl apply` does. Each string may hold several.
func (c *Cluster) Apply(ctx context.Context, yaml ...string) error {
	_, err := c.kubectl(ctx, strings.Join(yaml, "\n---\n"), "apply", "-f", "-")
	return err
}

// ApplyDir applies the manifests of a directory, or a kustomization if it holds one.
func (c *Cluster) ApplyDir(ctx context.Context, dir string) error {
	flag := "-f"
	if _, err := os.Stat(filepath.Join(dir, "kustomization.yaml")); err == nil {
		flag = "-k"
	}
	_, err := c.kubectl(ctx, "", "apply", flag, dir)
	return err
}

func (c *Cluster) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.KubectlPath(), args...)
	// The discovery cache of another cluster on a port used before would mislead.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
