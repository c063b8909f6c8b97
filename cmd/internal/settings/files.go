package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Secret reads a file that has one secret. Line breaks at its end are cut off, since most editors
// and many ways to make a Secret leave one there. Its errors name the file and never its content.
func Secret(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("file %s %s", path, plainError(err))
	}
	secret := strings.TrimRight(string(data), "\r\n")
	switch {
	case secret == "":
		return "", fmt.Errorf("file %s is empty: write the secret into it", path)
	case strings.ContainsAny(secret, "\r\n\x00"):
		return "", fmt.Errorf("file %s has more than one line: write nothing but the secret into it", path)
	}
	return secret, nil
}

// Credentials reads user and password; both are empty where none are configured. Files are read
// anew each time, so that a changed Secret counts from the next connection on.
func (b Backend) Credentials() (user, password string, err error) {
	var problems []error
	if b.UsernameFile != "" {
		var e error
		user, e = Secret(b.UsernameFile)
		problems = append(problems, e)
	}
	if b.PasswordFile != "" {
		var e error
		password, e = Secret(b.PasswordFile)
		problems = append(problems, e)
	}
	if err := errors.Join(problems...); err != nil {
		return "", "", err
	}
	return user, password, nil
}

// Authorities reads CAFile; nil, for those of the system, where there is none.
func (t TLS) Authorities() (*x509.CertPool, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("file %s %s", t.CAFile, plainError(err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("file %s has no certificate in PEM form", t.CAFile)
	}
	return pool, nil
}

// Certificate reads CertFile and KeyFile. It must not be called where there are none.
func (t TLS) Certificate() (*tls.Certificate, error) {
	for _, path := range []string{t.CertFile, t.KeyFile} {
		if _, err := os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("file %s %s", path, plainError(err))
		}
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("files %s and %s are no pair of certificate and key: %w", t.CertFile, t.KeyFile, err)
	}
	return &pair, nil
}

// CheckFiles reads every file that the settings name and reports all that cannot be used.
func (s Settings) CheckFiles(file string) error {
	p := &Problems{File: file}
	check := func(field string, err error) {
		for _, one := range separate(err) {
			p.add(0, field, "%v", one)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Backends)) {
		b, at := s.Backends[name], "backends."+name
		_, _, err := b.Credentials()
		check(at, err)
		if b.TLS == nil {
			continue
		}
		_, err = b.TLS.Authorities()
		check(at+".tls", err)
		if b.TLS.CertFile != "" {
			_, err = b.TLS.Certificate()
			check(at+".tls", err)
		}
	}
	return p.orNil()
}

// separate undoes errors.Join.
func separate(err error) []error {
	var many interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many.Unwrap()
	}
	return []error{err}
}
