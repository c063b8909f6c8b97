package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// binariesEnv names another directory that holds the control plane.
const binariesEnv = "CONCH_CONTROLPLANE"

// names of the programs, in the order they are needed.
const (
	etcdName      = "etcd"
	apiServerName = "kube-apiserver"
	managerName   = "kube-controller-manager"
	kubectlName   = "kubectl"
)

// Binaries returns the directory that holds etcd, kube-apiserver, kube-controller-manager and kubectl: $CONCH_CONTROLPLANE or
// bin/controlplane of the module. Its error says how to build them.
func Binaries() (string, error) {
	dir := os.Getenv(binariesEnv)
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "controlplane")
	}
	for _, name := range []string{etcdName, apiServerName, managerName, kubectlName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("find the control plane: %w; run `make controlplane` once, or set %s", err, binariesEnv)
		}
	}
	return dir, nil
}

// ModuleRoot returns the nearest directory at or above the working directory that holds a go.mod.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module root: no go.mod above the working directory")
		}
		dir = parent
	}
}
