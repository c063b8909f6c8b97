package rig

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/conch-dev/conch/test/cluster"
)

const (
	// Namespace is where conch lives.
	Namespace = "conch-system"
	// ServiceAccount is who conch is to the API server.
	ServiceAccount = "conch"
	// User is the same, as the audit log has it.
	User = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Install applies the CRD, the roles and the service account to a cluster, and waits until the API
// server serves DistributedLocks.
func Install(ctx context.Context, c *cluster.Cluster) error {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return err
	}
	for _, dir := range []string{"config/namespace", "config/crd", "config/rbac", "config/policies"} {
		if err := c.ApplyDir(ctx, filepath.Join(root, dir)); err != nil {
			return fmt.Errorf("install conch on %s: %w", c.Name(), err)
		}
	}
	_, err = c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/distributedlocks.conch.dev")
	return err
}
