package backends

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
)

// limited refuses locks with a longer ttl than the operator allows. What is held already is renewed
// for no longer than that, rather than lost because the limit was lowered.
type limited struct {
	*redisnode.Backend
	max time.Duration
}

var (
	_ lock.Backend   = (*limited)(nil)
	_ lock.Notifier  = (*limited)(nil)
	_ lock.Describer = (*limited)(nil)
	_ lock.Announcer = (*limited)(nil)
	_ lock.Stamper   = (*limited)(nil)
)

// Acquire is that of the backend, within the limit.
func (l *limited) Acquire(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	if r.TTL > l.max {
		return lock.Acquired{}, fmt.Errorf("%w: ttl %s exceeds maxTTL %s of the backend: lower the lock's ttl, or raise maxTTL in conch's configuration",
			lock.ErrInvalid, r.TTL, l.max)
	}
	return l.Backend.Acquire(ctx, r)
}

// Renew is that of the backend, within the limit.
func (l *limited) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	within := make([]lock.Extension, len(extensions))
	for i, e := range extensions {
		e.TTL = min(e.TTL, l.max)
		within[i] = e
	}
	return l.Backend.Renew(ctx, within)
}

// Stamp is that of the backend, within the limit.
func (l *limited) Stamp(ctx context.Context, g lock.Grant, stage lock.Stage) (lock.Grant, error) {
	g.TTL = min(g.TTL, l.max)
	return l.Backend.Stamp(ctx, g, stage)
}
