package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

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
)

// probes are requests, never stored, that show each policy in force: what is refused with want, or else is
// answered with it.
var probes = []struct{ path, body, want string }{
	{"api/v1/namespaces/default/pods", pod(`"annotations":{"conch.dev/singleton":"exclusive"}`), "schedulingGates"},
	{"api/v1/namespaces/default/pods", pod(`"annotations":{"conch.dev/singelton":"exclusive"}`), "unknown annotation"},
	{"api/v1/namespaces/default/pods", pod(`"labels":{"conch.dev/role":"leader"}`), "only conch writes the label"},
	{"apis/batch/v1/namespaces/default/jobs", job(`"annotations":{"conch.dev/singleton":"exclusive"}`), `"suspend":true`},
	{"apis/batch/v1/namespaces/default/jobs", job(`"annotations":{"conch.dev/key":"k"}`), "only conch writes the annotations"},
	{"apis/apps/v1/namespaces/default/deployments", deployment(`"annotations":{"conch.dev/singleton":"leader"}`), "deployment-probe"},
	{"apis/apps/v1/namespaces/default/deployments", deployment(`"annotations":{"conch.dev/key":"k"}`), "only conch writes the annotations"},
	{"apis/batch/v1/namespaces/default/cronjobs", cronJob(`"annotations":{"conch.dev/singleton":"exclusive"}`), "cronjob-probe"},
}

const containers = `"restartPolicy":"Never","containers":[{"name":"c","image":"c"}]`

func pod(meta string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"probe",%s},"spec":{%s}}`, meta, containers)
}

func job(meta string) string {
	return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"probe",%s},"spec":{"template":{"spec":{%s}}}}`, meta, containers)
}

func deployment(meta string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"probe",%s},"spec":{"selector":{"matchLabels":{"a":"b"}},`+
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"c"}]}}}}`, meta)
}

func cronJob(meta string) string {
	return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"probe",%s},"spec":{"schedule":"0 0 1 1 *",`+
		`"timeZone":"Etc/UTC","jobTemplate":{"spec":{"template":{"spec":{%s}}}}}}`, meta, containers)
}

// awaitPolicies tries requests until the API server answers each as the policies say. It takes up policies
// one after the other.
func awaitPolicies(ctx context.Context, c *cluster.Cluster) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", c.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, policiesWithin)
	defer cancel()
	tick := time.NewTicker(policiesEvery)
	defer tick.Stop()
	for _, p := range probes {
		for answer := ""; !strings.Contains(answer, p.want); {
			answer = try(ctx, client, p.path, p.body)
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for the policies of %s: %w; %s was answered by %s", c.Name(), ctx.Err(), p.body, answer)
			case <-tick.C:
			}
		}
	}
	return nil
}

// try returns what the API server would have stored, or why not.
func try(ctx context.Context, client kubernetes.Interface, path, body string) string {
	raw, err := client.CoreV1().RESTClient().Post().AbsPath(path).Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body([]byte(body)).Do(ctx).Raw()
	if err != nil {
		return err.Error() + ": " + string(raw)
	}
	return string(raw)
}
