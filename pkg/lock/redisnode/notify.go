package redisnode

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/conch-dev/conch/pkg/lock"
)

const (
	firstResubscribe = 100 * time.Millisecond
	lastResubscribe  = 3 * time.Second
	// pingEvery is how often a silent subscription is asked whether it lives; after silenceEnds without any sign it is made anew.
	pingEvery   = 5 * time.Second
	silenceEnds = 12 * time.Second
)

// Notify follows the releases of all keys on a connection of its own. Missed is called at the beginning too, because releases before that
// were not heard. It returns nil when ctx ends, and an error only where trying again is of no use: the user may not subscribe.
func (b *Backend) Notify(ctx context.Context, hint func(lock.Key), missed func()) error {
	wait := firstResubscribe
	for ctx.Err() == nil {
		subscribed, err := b.listen(ctx, hint, missed)
		if ctx.Err() == nil && isFinal(err) {
			return unknown("notify", err)
		}
		if subscribed {
			wait = firstResubscribe
		}
		pause(ctx, wait/2+rand.N(wait))
		wait = min(2*wait, lastResubscribe)
	}
	return nil
}

// listen holds one subscription until it breaks, and says whether it ever stood.
func (b *Backend) listen(ctx context.Context, hint func(lock.Key), missed func()) (subscribed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sub := b.main.client.PSubscribe(ctx, b.layout.channels())
	watch := &watch{sub: sub, done: make(chan struct{})}
	watch.heard()
	go watch.run(ctx)
	defer func() {
		cancel()
		<-watch.done
	}()
	for {
		message, err := sub.Receive(ctx)
		if err != nil {
			return subscribed, err
		}
		watch.heard()
		switch m := message.(type) {
		case *redis.Subscription:
			subscribed = true
			missed()
		case *redis.Message:
			if key, ok := b.layout.keyOf(m.Channel); ok {
				hint(key)
			}
		}
	}
}

// watch closes a subscription when its context ends, which a read does not notice by itself, or when the other side has gone silent.
type watch struct {
	sub  *redis.PubSub
	done chan struct{}
	last atomic.Int64
	born time.Time
}

func (w *watch) heard() {
	if w.born.IsZero() {
		w.born = time.Now()
	}
	w.last.Store(int64(time.Since(w.born)))
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	defer func() { _ = w.sub.Close() }()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if time.Since(w.born)-time.Duration(w.last.Load()) > silenceEnds {
				return
			}
			_ = w.sub.Ping(ctx)
		}
	}
}

// isFinal reports an answer that waiting does not change.
func isFinal(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch reason, _ := classify(err); reason {
	case lock.ReasonNoAuth, lock.ReasonWrongPass, lock.ReasonNoPerm:
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
