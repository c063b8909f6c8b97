package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// cleanupWithin bounds the request that removes a namespace; the removal itself goes on in the background.
const cleanupWithin = 10 * time.Second

// Namespace makes a namespace of its own for a test, waits until pods can be created in it, and deletes it at the end.
func Namespace(t testing.TB, c *Cluster) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatalf("make a client for %s: %v", c.name, err)
	}
	want := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), want, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace in %s: %v", c.name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupWithin)
		defer cancel()
		if err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Logf("delete namespace %s of %s: %v", ns.Name, c.name, err)
		}
	})
	ready := func(ctx context.Context) bool { return c.podsCreatable(ctx, ns.Name) }
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	if err := c.await(ctx, c.etcd, ready); err != nil {
		t.Fatalf("prepare namespace %s of %s: %v", ns.Name, c.name, err)
	}
	return ns.Name
}

// podsCreatable tells whether the controller-manager has made what every pod refers to.
func (c *Cluster) podsCreatable(ctx context.Context, namespace string) bool {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return false
	}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err == nil
}
