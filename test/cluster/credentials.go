package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files of a cluster's directory.
const (
	caFile      = "ca.crt"
	certFile    = "serving.crt"
	keyFile     = "serving.key"
	saKeyFile   = "service-account.key"
	tokensFile  = "tokens.csv"
	policyFile  = "audit-policy.yaml"
	auditFile   = "audit.log"
	managerConf = "controller-manager.kubeconfig"
	adminConf   = "admin.kubeconfig"
)

// Users that the API server knows by a static token. The audit log tells them apart.
const (
	AdminUser   = "cluster-admin"
	AgentUser   = "node-agent"
	managerUser = "system:kube-controller-manager"
)

// certificateLife outlives any soak run.
const certificateLife = 30 * 24 * time.Hour

// tokens maps each user to a fresh secret of this cluster.
func newTokens() map[string]string {
	return map[string]string{AdminUser: rand.Text(), AgentUser: rand.Text(), managerUser: rand.Text()}
}

// writeCredentials fills dir with the CA, the serving certificate, the service account key and the token file. It returns the CA.
func writeCredentials(dir string, tokens map[string]string) ([]byte, error) {
	ca, err := writeCertificates(dir)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	if err := writeKey(filepath.Join(dir, saKeyFile), key); err != nil {
		return nil, err
	}
	var lines strings.Builder
	for user, token := range tokens {
		fmt.Fprintf(&lines, "%s,%s,%s,\"system:masters\"\n", token, user, user)
	}
	return ca, writeFile(filepath.Join(dir, tokensFile), []byte(lines.String()))
}

// writeCertificates makes a CA of this cluster and a serving certificate for the loopback address.
func writeCertificates(dir string) ([]byte, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the CA key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the serving key: %w", err)
	}
	root := template("conch-test-ca")
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	leaf := template("kube-apiserver")
	leaf.IPAddresses, leaf.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost", "kubernetes.default.svc"}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

	ca, err := sign(root, root, caKey, caKey)
	if err != nil {
		return nil, err
	}
	cert, err := sign(leaf, root, key, caKey)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{caFile: ca, certFile: cert} {
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return nil, err
		}
	}
	return ca, writeKey(filepath.Join(dir, keyFile), key)
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), BasicConstraintsValid: true,
	}
}

func sign(cert, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", cert.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
