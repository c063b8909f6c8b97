package backends

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"github.com/conch-dev/conch/cmd/internal/settings"
)

// tlsConfig reads authorities and certificate anew for each handshake, so that all of them may be
// rotated while conch runs.
func tlsConfig(b settings.Backend) *tls.Config {
	t := b.TLS
	if t == nil {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.CertFile != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := t.Certificate()
			if err != nil {
				return nil, fmt.Errorf("tls: certificate of conch: %w", err)
			}
			return pair, nil
		}
	}
	if t.CAFile != "" {
		// Not skipped, but done below: the library would trust the authorities of the start for ever.
		c.InsecureSkipVerify = true
		c.VerifyConnection = verifier(t, expectedName(b))
	}
	return c
}

// verifier does what the library does by default, with the authorities that the file has now.
func verifier(t *settings.TLS, name string) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		refuse := func(err error) error {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		roots, err := t.Authorities()
		if err != nil {
			return refuse(err)
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name})
		if err != nil {
			return refuse(err)
		}
		return nil
	}
}

// expectedName is what the server's certificate must be for.
func expectedName(b settings.Backend) string {
	if b.TLS.ServerName != "" {
		return b.TLS.ServerName
	}
	host, _, err := net.SplitHostPort(b.Addresses[0])
	if err != nil {
		return b.Addresses[0]
	}
	return host
}
