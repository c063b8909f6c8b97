// Package api tests the DistributedLock as a user meets it: what a real API server accepts and refuses,
// with which words, and what kubectl prints.
package api

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/conch-dev/conch/test/cluster"
)

const startWithin = 3 * time.Minute

var (
	update = flag.Bool("update", false, "write the golden files anew")
	// server is the cluster of all tests here; conch is installed but does not run, for lack of nodes.
	server *cluster.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	var err error
	if server, err = cluster.Start(ctx, cluster.Options{Name: "api"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	if err := install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// install applies what a user applies.
func install(ctx context.Context) error {
	root, err := cluster.ModuleRoot()
	if err != nil {
		return err
	}
	if err := server.ApplyDir(ctx, filepath.Join(root, "config/default")); err != nil {
		return fmt.Errorf("install conch: %w", err)
	}
	_, err = server.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/distributedlocks.conch.dev")
	return err
}

func locks(t *testing.T, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(lockResource).Namespace(namespace)
}
