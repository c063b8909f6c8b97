package redisnode

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Backend keeps locks in one Redis. Make it with New, and Close it.
type Backend struct {
	layout layout
	main   *executor
	// renewals has a pool of its own: whatever else waits for an answer, a renewal does not wait behind it.
	renewals *executor
}

var (
	_ lock.Backend   = (*Backend)(nil)
	_ lock.Notifier  = (*Backend)(nil)
	_ lock.Describer = (*Backend)(nil)
	_ lock.Announcer = (*Backend)(nil)
	_ lock.Stamper   = (*Backend)(nil)
)

// New returns a backend. It does not connect; the first call does.
func New(o Options) (*Backend, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("redis options: %w", err)
	}
	o = o.WithDefaults()
	return &Backend{
		layout:   layout{prefix: o.Prefix},
		main:     newExecutor(o, o.ClientName, o.PoolSize),
		renewals: newExecutor(o, o.ClientName+"-renew", o.RenewPoolSize),
	}, nil
}

// Close ends what is under way with an error, and waits for it. Nothing in the store changes.
func (b *Backend) Close() error { return errors.Join(b.main.close(), b.renewals.close()) }

// invalid wraps the problems of a request.
func invalid(problems ...error) error {
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%w: %w", lock.ErrInvalid, err)
	}
	return nil
}

// checkKey refuses a raw key that would stand among the keys of others.
func (b *Backend) checkKey(k lock.Key) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if k.Raw && strings.HasPrefix(k.Name, b.layout.prefix) {
		return fmt.Errorf("raw key %q begins with the prefix %q of conch's own keys: use another", k.Name, b.layout.prefix)
	}
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < lock.MinTTL || ttl > lock.MaxTTL {
		return fmt.Errorf("ttl %s: write between %s and %s", ttl, lock.MinTTL, lock.MaxTTL)
	}
	return nil
}

// checkToken refuses a token that cannot be one of ours, such as the empty one.
func checkToken(g lock.Grant) error {
	if g.Key.Tick != 0 {
		if _, _, _, ok := parseTickToken(string(g.Token)); !ok {
			return fmt.Errorf("token %q is not of the form owner#number#stage", g.Token)
		}
		return nil
	}
	if _, _, ok := parseToken(string(g.Token)); !ok {
		return fmt.Errorf("token %q is not of the form owner#number", g.Token)
	}
	return nil
}

// milliseconds is what the store counts in, rounded down: a ttl must not be longer than the caller thinks.
func milliseconds(d time.Duration) int64 { return d.Milliseconds() }

// millisecondsUp is for waits, which must not be shorter.
func millisecondsUp(d time.Duration) int64 {
	return int64(math.Ceil(float64(d) / float64(time.Millisecond)))
}
