// Package backends turns settings into stores of locks. It is the one place that picks Redis.
package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
)

// Open makes every backend of the settings by its name, or reports why each of the others cannot be
// made. Nothing is connected yet, and no secret is read: whatever fails later is an answer of the
// backend, classified and repeated until it is mended.
func Open(s settings.Settings) (map[string]lock.Backend, error) {
	all := map[string]lock.Backend{}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.Backends)) {
		b, err := open(s.Backends[name], s.KeyPrefix)
		if err != nil {
			problems = append(problems, fmt.Errorf("backend %s: %w", name, err))
			continue
		}
		all[name] = b
	}
	if err := errors.Join(problems...); err != nil {
		return nil, errors.Join(err, Close(all))
	}
	return all, nil
}

// Close ends the connections of backends.
func Close(all map[string]lock.Backend) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c, ok := all[name].(io.Closer); ok {
			if err := c.Close(); err != nil {
				problems = append(problems, fmt.Errorf("close backend %s: %w", name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Announcers are those of the backends that can be announced to.
func Announcers(all map[string]lock.Backend) map[string]lock.Announcer {
	out := map[string]lock.Announcer{}
	for name, b := range all {
		if a, ok := b.(lock.Announcer); ok {
			out[name] = a
		}
	}
	return out
}

func open(b settings.Backend, prefix string) (lock.Backend, error) {
	node, err := redisnode.New(redisnode.Options{
		Prefix:      prefix,
		Mode:        redisnode.Standalone,
		Addresses:   b.Addresses,
		Credentials: credentials(b),
		TLS:         tlsConfig(b),
		DB:          b.DB,
		Timeout:     b.Timeout,
	})
	if err != nil {
		return nil, err
	}
	return &limited{Backend: node, max: b.MaxTTL}, nil
}

// credentials reads the files for each connection, so that both may change while conch runs.
func credentials(b settings.Backend) redisnode.Credentials {
	if b.PasswordFile == "" {
		return nil
	}
	return func(context.Context) (string, string, error) { return b.Credentials() }
}
