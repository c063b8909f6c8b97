package settings

import (
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/conch-dev/conch/pkg/lock"
)

// hints are what people write where conch has something else.
var hints = map[string]string{
	"password": "write passwordFile with the path of a file that has it",
	"username": "write usernameFile with the path of a file that has it",
	"user":     "write usernameFile with the path of a file that has it",
	"address":  "write addresses with a list, such as [\"redis:6379\"]",
	"url":      "write addresses with host:port; user, password, database and TLS have fields of their own",
	"host":     "write addresses with host:port",
	"port":     "write addresses with host:port",
	"database": "write db",
	"ca":       "write caFile with the path of a file that has it",
	"insecure": "write insecureSkipVerify",
}

func (r *reader) backends(n *yaml.Node, path string, s *Settings) {
	s.Backends = map[string]Backend{}
	r.entries(n, path, "one backend or more by name, such as default: {addresses: [\"redis:6379\"]}", func(key, value *yaml.Node, at string) {
		if err := backendName(key.Value); err != nil {
			r.problem(key, at, "%v", err)
		}
		r.at[at] = key.Line
		s.Backends[key.Value] = r.backend(value, at)
	})
}

func (r *reader) backend(n *yaml.Node, path string) Backend {
	b := defaultBackend()
	r.mapping(n, path, []field{
		{"addresses", func(n *yaml.Node, path string) { r.addresses(n, path, &b) }},
		{"db", r.integer(&b.DB, 0, math.MaxInt16)},
		{"maxTTL", r.duration(&b.MaxTTL, 5*time.Second, lock.MaxTTL)},
		{"mode", r.text((*string)(&b.Mode), mode)},
		{"passwordFile", r.text(&b.PasswordFile, filePath)},
		{"timeout", r.duration(&b.Timeout, 10*time.Millisecond, time.Minute)},
		{"tls", func(n *yaml.Node, path string) { b.TLS = r.tls(n, path) }},
		{"usernameFile", r.text(&b.UsernameFile, filePath)},
	}, hints)
	if n.Kind != yaml.MappingNode {
		return b
	}
	if r.at[join(path, "addresses")] == 0 {
		r.about(path, "has no addresses: write one, such as addresses: [\"redis:6379\"]")
	}
	if b.UsernameFile != "" && r.at[join(path, "passwordFile")] == 0 {
		r.about(join(path, "usernameFile"), "has no effect without a password: write passwordFile too")
	}
	return b
}

func (r *reader) addresses(n *yaml.Node, path string, b *Backend) {
	r.list(n, path, "[\"redis:6379\"]", func(n *yaml.Node, at string) {
		var a string
		r.text(&a, address)(n, at)
		b.Addresses = append(b.Addresses, a)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) != 1 {
		r.problem(n, path, "has %d entries: mode standalone takes exactly one", len(n.Content))
	}
}

func (r *reader) tls(n *yaml.Node, path string) *TLS {
	t := &TLS{}
	r.mapping(n, path, []field{
		{"caFile", r.text(&t.CAFile, filePath)},
		{"certFile", r.text(&t.CertFile, filePath)},
		{"insecureSkipVerify", r.yesNo(&t.InsecureSkipVerify)},
		{"keyFile", r.text(&t.KeyFile, filePath)},
		{"serverName", r.text(&t.ServerName, serverName)},
	}, hints)
	if cert, key := join(path, "certFile"), join(path, "keyFile"); (r.at[cert] == 0) != (r.at[key] == 0) {
		one, other := cert, "keyFile"
		if r.at[cert] == 0 {
			one, other = key, "certFile"
		}
		r.about(one, "stands alone: write %s too", other)
	}
	if t.InsecureSkipVerify && t.CAFile != "" {
		r.about(join(path, "insecureSkipVerify"), "leaves caFile without effect: remove one of them")
	}
	return t
}
