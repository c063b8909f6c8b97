package backends_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/test/redisserver"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func sign(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (cert, key []byte, private *ecdsa.PrivateKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = private
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), private
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	text, _, key := sign(t, template, template, nil)
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, pem: text}
}

// issue writes a certificate for the loopback address, or for a client, and its key.
func (a authority) issue(t *testing.T, cert, key string, usage x509.ExtKeyUsage) {
	t.Helper()
	c, k, _ := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "conch"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames: []string{"redis.example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.cert, a.key)
	write(t, cert, c)
	write(t, key, k)
}

func freeAddress(t *testing.T) (address, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), port
}

// secure is a server that wants certificates from clients, and the settings of a client that has one.
func secure(t *testing.T) (s *redisserver.Server, b settings.Backend, dir string, ca authority) {
	t.Helper()
	dir, ca = t.TempDir(), newAuthority(t, "first")
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("server-ca"), ca.pem)
	write(t, at("ca"), ca.pem)
	ca.issue(t, at("server.crt"), at("server.key"), x509.ExtKeyUsageServerAuth)
	ca.issue(t, at("client.crt"), at("client.key"), x509.ExtKeyUsageClientAuth)
	address, port := freeAddress(t)
	s = redisserver.Start(t, "--tls-port", port, "--tls-cert-file", at("server.crt"), "--tls-key-file", at("server.key"), "--tls-ca-cert-file", at("server-ca"))
	b = settings.Backend{Addresses: []string{address}, TLS: &settings.TLS{CAFile: at("ca"), CertFile: at("client.crt"), KeyFile: at("client.key")}}
	return s, b, dir, ca
}

func TestBothSidesOfTLSAreChecked(t *testing.T) {
	t.Parallel()
	_, b, dir, _ := secure(t)
	other := newAuthority(t, "other")
	stranger := filepath.Join(dir, "stranger")
	write(t, stranger, other.pem)
	for name, tc := range map[string]struct {
		change func(*settings.TLS)
		ok     bool
	}{
		"as configured":                       {func(*settings.TLS) {}, true},
		"by the name in the certificate":      {func(c *settings.TLS) { c.ServerName = "redis.example.org" }, true},
		"by a name that is not in it":         {func(c *settings.TLS) { c.ServerName = "other.example.org" }, false},
		"an authority that did not sign":      {func(c *settings.TLS) { c.CAFile = stranger }, false},
		"the authorities of the system":       {func(c *settings.TLS) { c.CAFile = "" }, false},
		"without a check":                     {func(c *settings.TLS) { c.CAFile, c.InsecureSkipVerify = "", true }, true},
		"a client without a certificate":      {func(c *settings.TLS) { c.CertFile, c.KeyFile = "", "" }, false},
		"a certificate that is not there":     {func(c *settings.TLS) { c.CertFile = "/no/such/file" }, false},
		"authorities that are not there":      {func(c *settings.TLS) { c.CAFile = "/no/such/file" }, false},
		"authorities that are no certificate": {func(c *settings.TLS) { c.CAFile = c.KeyFile }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, tls := b, *b.TLS
			own.TLS = &tls
			tc.change(own.TLS)
			_, err := acquire(t, open(t, own), name)
			if (err == nil) != tc.ok {
				t.Fatalf("got %v", err)
			}
			// The server refuses a client after the client has ended its part of the handshake, and
			// may break the connection before its reason has arrived.
			refused := own.TLS.CertFile == "" && lock.ReasonOf(err) == lock.ReasonUnreachable
			if err != nil && lock.ReasonOf(err) != lock.ReasonTLS && !refused {
				t.Errorf("reason %s: %v", lock.ReasonOf(err), err)
			}
		})
	}
}

func TestAuthoritiesAndCertificateAreRotatedWhileConchRuns(t *testing.T) {
	t.Parallel()
	s, b, dir, _ := secure(t)
	backend := open(t, b)
	if _, err := acquire(t, backend, "before"); err != nil {
		t.Fatal(err)
	}
	next := newAuthority(t, "second")
	at := func(name string) string { return filepath.Join(dir, name) }
	next.issue(t, at("server.crt"), at("server.key"), x509.ExtKeyUsageServerAuth)
	write(t, at("server-ca"), next.pem)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(t, backend, "between"); !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("before the rotation of the client: %v", err)
	}
	next.issue(t, at("client.crt"), at("client.key"), x509.ExtKeyUsageClientAuth)
	write(t, at("ca"), next.pem)
	if _, err := acquire(t, backend, "after"); err != nil {
		t.Errorf("after it: %v", err)
	}
}
