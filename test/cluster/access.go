package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a service account's token lasts: longer than any test.
const tokenSeconds = 24 * 60 * 60

// Name returns the name given in Options.
func (c *Cluster) Name() string { return c.name }

// Dir returns the directory of data, logs and keys.
func (c *Cluster) Dir() string { return c.dir }

// Config returns a fresh cluster-admin's configuration without client-side rate limit.
func (c *Cluster) Config() *rest.Config { return c.config(c.tokens[AdminUser]) }

// AgentConfig returns the configuration of the node agent: cluster-admin under a name of its own in the audit log.
func (c *Cluster) AgentConfig() *rest.Config { return c.config(c.tokens[AgentUser]) }

func (c *Cluster) config(token string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + loopback(c.port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
		QPS:             -1,
	}
}

// Kubeconfig returns the path of the cluster-admin's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, adminConf) }

// ConfigFor returns the configuration of a service account, which must exist. Client-side rate limits are the client's own defaults.
func (c *Cluster) ConfigFor(ctx context.Context, namespace, serviceAccount string) (*rest.Config, error) {
	token, err := c.serviceAccountToken(ctx, namespace, serviceAccount)
	if err != nil {
		return nil, err
	}
	cfg := c.config(token)
	cfg.QPS = 0
	return cfg, nil
}

// KubeconfigFor writes a kubeconfig for a service account, which must exist, and returns its path. A program that uses it has just the
// rights that its RBAC rules give.
func (c *Cluster) KubeconfigFor(ctx context.Context, namespace, serviceAccount string) (string, error) {
	token, err := c.serviceAccountToken(ctx, namespace, serviceAccount)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, fmt.Sprintf("%s.%s.kubeconfig", namespace, serviceAccount))
	return path, c.writeKubeconfig(path, token)
}

func (c *Cluster) serviceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	seconds := int64(tokenSeconds)
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	got, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, req, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for service account %s/%s: %w", namespace, name, err)
	}
	return got.Status.Token, nil
}

func (c *Cluster) writeKubeconfig(path, token string) error {
	kc := clientcmdapi.NewConfig()
	kc.Clusters[c.name] = &clientcmdapi.Cluster{Server: "https://" + loopback(c.port), CertificateAuthorityData: c.ca}
	kc.AuthInfos[c.name] = &clientcmdapi.AuthInfo{Token: token}
	kc.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: c.name}
	kc.CurrentContext = c.name
	if err := clientcmd.WriteToFile(*kc, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
