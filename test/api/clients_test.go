package api

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/conch-dev/conch/test/cluster"
)

func namespace(t *testing.T) string {
	t.Helper()
	return cluster.Namespace(t, server)
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// restClient sends bytes as they are.
func restClient(t *testing.T) rest.Interface {
	t.Helper()
	return clientset(t).RESTClient()
}
