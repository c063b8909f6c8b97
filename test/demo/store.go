package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/conch-dev/conch/test/redisserver"
)

// store is the Redis of the demo.
type store interface {
	name() string
	address() string
	// real is false for a stand-in whose data and clock are part of this process.
	real() bool
	flush(ctx context.Context) error
	close()
}

// startStore starts redis-server if it is installed, else an embedded miniredis.
func startStore(ctx context.Context) (store, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return startMini()
	}
	dir, err := os.MkdirTemp("", "conch-redis-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for Redis: %w", err)
	}
	server, err := redisserver.New(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &realStore{server: server}, nil
}

type realStore struct{ server *redisserver.Server }

func (r *realStore) name() string    { return "redis-server" }
func (r *realStore) address() string { return r.server.Addr() }
func (r *realStore) real() bool      { return true }
func (r *realStore) close() {
	r.server.Kill()
	_ = os.RemoveAll(r.server.Dir())
}

func (r *realStore) flush(ctx context.Context) error {
	c := redis.NewClient(&redis.Options{Addr: r.server.Addr()})
	defer func() { _ = c.Close() }()
	if err := c.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty Redis: %w", err)
	}
	return nil
}

// mini is a miniredis whose clock is driven by the real one: by itself it lets no key run out.
type mini struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	driver sync.WaitGroup
}

// clockStep is how often the clock of miniredis is moved.
const clockStep = 50 * time.Millisecond

func startMini() (store, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	m := &mini{server: server, stop: make(chan struct{})}
	m.driver.Go(m.drive)
	return m, nil
}

func (m *mini) drive() {
	tick := time.NewTicker(clockStep)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-m.stop:
			return
		case now := <-tick.C:
			m.server.SetTime(now)
			m.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (m *mini) name() string                { return "embedded miniredis (install redis-server for all scenes)" }
func (m *mini) address() string             { return m.server.Addr() }
func (m *mini) real() bool                  { return false }
func (m *mini) flush(context.Context) error { m.server.FlushAll(); return nil }
func (m *mini) close() {
	close(m.stop)
	m.driver.Wait()
	m.server.Close()
}
