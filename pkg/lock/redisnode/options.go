package redisnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Mode says how the addresses are to be understood.
type Mode string

// Standalone is one server, or one name that always leads to the master.
const Standalone Mode = "Standalone"

const (
	// DefaultPrefix stands before everything that is not a raw key.
	DefaultPrefix = "conch:"
	// DefaultTimeout bounds one operation with all that belongs to it: waiting for a connection, dialling, one retry. It fits several times
	// into the time that a lock of 15s has left when a renewal is due.
	DefaultTimeout = time.Second
	// DefaultPoolSize is enough, since a request takes a connection for one round trip. It is set so that it does not follow the CPU limit.
	DefaultPoolSize = 8
	// DefaultRenewPoolSize is for renewals alone, so that nothing else can starve them.
	DefaultRenewPoolSize = 4
	// DefaultClientName is what CLIENT LIST shows.
	DefaultClientName = "conch"

	maxPrefixBytes  = 64
	maxClientBytes  = 64
	minTimeout      = 10 * time.Millisecond
	maxTimeout      = time.Minute
	minRetryBackoff = 5 * time.Millisecond
	maxRetryBackoff = 50 * time.Millisecond
)

// Credentials returns user and password for a new connection, so that both may change while conch runs. The user may be empty.
type Credentials func(ctx context.Context) (user, password string, err error)

// Options say which Redis, and how to talk to it. Zero values get the defaults above.
type Options struct {
	Prefix        string
	Mode          Mode
	Addresses     []string
	Credentials   Credentials
	TLS           *tls.Config
	DB            int
	ClientName    string
	Timeout       time.Duration
	PoolSize      int
	RenewPoolSize int
}

// WithDefaults fills what is zero.
func (o Options) WithDefaults() Options {
	o.Prefix = orDefault(o.Prefix, DefaultPrefix)
	o.Mode = orDefault(o.Mode, Standalone)
	o.ClientName = orDefault(o.ClientName, DefaultClientName)
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.PoolSize = orDefault(o.PoolSize, DefaultPoolSize)
	o.RenewPoolSize = orDefault(o.RenewPoolSize, DefaultRenewPoolSize)
	return o
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Validate reports everything that cannot be used, with what to write instead.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(!plain(o.Prefix) || strings.ContainsAny(o.Prefix, "{}") || len(o.Prefix) > maxPrefixBytes,
		"prefix %q: write at most %d printable characters without spaces and braces, such as %q", o.Prefix, maxPrefixBytes, DefaultPrefix)
	refuse(!plain(o.ClientName) || len(o.ClientName) > maxClientBytes,
		"clientName %q: write at most %d printable characters without spaces", o.ClientName, maxClientBytes)
	refuse(o.Mode != Standalone, "mode %q: write %q", o.Mode, Standalone)
	refuse(len(o.Addresses) != 1, "addresses: %d given, mode %s takes exactly one", len(o.Addresses), Standalone)
	for _, a := range o.Addresses {
		refuse(!plain(a) || strings.ContainsAny(a, "@?") || strings.Contains(a, "://"),
			"address: write host:port or the path of a socket, and user and password elsewhere")
	}
	refuse(o.DB < 0, "db %d: write 0 or more", o.DB)
	refuse(o.Timeout < minTimeout || o.Timeout > maxTimeout, "timeout %s: write between %s and %s", o.Timeout, minTimeout, maxTimeout)
	refuse(o.PoolSize < 1 || o.RenewPoolSize < 1, "poolSize and renewPoolSize: write 1 or more")
	return errors.Join(problems...)
}

// plain reports printable ASCII without spaces.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// credentialsError tells an error of Credentials from one of the server.
type credentialsError struct{ cause error }

func (e *credentialsError) Error() string { return e.cause.Error() }
func (e *credentialsError) Unwrap() error { return e.cause }

func (c Credentials) provider() func(context.Context) (string, string, error) {
	if c == nil {
		return nil
	}
	return func(ctx context.Context) (string, string, error) {
		user, password, err := c(ctx)
		if err != nil {
			return "", "", &credentialsError{err}
		}
		return user, password, nil
	}
}

// universal translates the options for one client with a pool of its own. One retry is harmless, because every script may run twice, and
// the operation's deadline covers it.
func (o Options) universal(name string, poolSize int, dial dialFunc) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:                      o.Addresses,
		DB:                         o.DB,
		ClientName:                 name,
		CredentialsProviderContext: o.Credentials.provider(),
		Dialer:                     dial,
		Protocol:                   2, // nothing of ours needs pushes
		MaxRetries:                 1,
		MinRetryBackoff:            minRetryBackoff,
		MaxRetryBackoff:            maxRetryBackoff,
		DialTimeout:                o.Timeout / 4 * 3, // so that its error is known before the operation's end
		DialerRetries:              1,
		ReadTimeout:                o.Timeout,
		WriteTimeout:               o.Timeout,
		PoolTimeout:                o.Timeout,
		ContextTimeoutEnabled:      true, // else a context's deadline does not reach the socket
		PoolSize:                   poolSize,
		PipelinePoolSize:           -1, // everything is a pipeline, one pool is enough
		DisableIdentity:            true,
		MaintNotificationsConfig:   &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
