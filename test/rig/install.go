package rig

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// Install applies the CRD, the roles, the service account and the policies to a cluster, and waits until
// the API server serves DistributedLocks and the policies are in force.
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
	if _, err = c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/distributedlocks.conch.dev"); err != nil {
		return err
	}
	return awaitPolicies(ctx, c)
}

const (
	// policiesWithin bounds the wait for the API server to have read the policies, which takes a second or two.
	policiesWithin = 30 * time.Second
	policiesEvery  = 100 * time.Millisecond
	// probe is what the mutating policies gate and mark, and what the validating ones refuse without them.
	probe = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe","namespace":"default","annotations":` +
		`{"conch.dev/singleton":"exclusive"}},"spec":{"containers":[{"name":"c","image":"c"}]}}`
	// misspelt is what the validating policies refuse.
	misspelt = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe","namespace":"default","annotations":` +
		`{"conch.dev/singelton":"exclusive"}},"spec":{"containers":[{"name":"c","image":"c"}]}}`
)

// awaitPolicies tries pods that are never stored until the API server answers as the policies say.
func awaitPolicies(ctx context.Context, c *cluster.Cluster) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", c.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, policiesWithin)
	defer cancel()
	tick := time.NewTicker(policiesEvery)
	defer tick.Stop()
	for {
		var made corev1.Pod
		gateErr := try(ctx, client, probe, &made)
		typoErr := try(ctx, client, misspelt, &corev1.Pod{})
		if gateErr == nil && len(made.Spec.SchedulingGates) == 1 && typoErr != nil && strings.Contains(typoErr.Error(), "unknown annotation") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the policies of %s: %w", c.Name(), errors.Join(ctx.Err(), gateErr, typoErr))
		case <-tick.C:
		}
	}
}

func try(ctx context.Context, client kubernetes.Interface, body string, into *corev1.Pod) error {
	return client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Into(into)
}
