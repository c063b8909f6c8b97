package rig

import (
	"context"
	"sync"

	"github.com/conch-dev/conch/test/cluster"
)

var kubeconfigs sync.Map // *cluster.Cluster -> *kubeconfigOnce

type kubeconfigOnce struct {
	mu   sync.Mutex // guards path
	path string
}

// serviceKubeconfig is the kubeconfig of conch's service account, written once a cluster: replicas
// that start at the same time read the same file.
func serviceKubeconfig(ctx context.Context, c *cluster.Cluster) (string, error) {
	entry, _ := kubeconfigs.LoadOrStore(c, &kubeconfigOnce{})
	once, _ := entry.(*kubeconfigOnce)
	once.mu.Lock()
	defer once.mu.Unlock()
	if once.path != "" {
		return once.path, nil
	}
	path, err := c.KubeconfigFor(ctx, Namespace, ServiceAccount)
	if err != nil {
		return "", err
	}
	once.path = path
	return path, nil
}
