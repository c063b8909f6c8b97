package redisserver

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client is a plain client for looking and meddling, closed with the test. Auth is user and password, if the server wants them.
func (s *Server) Client(tb testing.TB, auth ...string) *redis.Client {
	tb.Helper()
	o := &redis.Options{
		Addr: s.Addr(), Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if len(auth) == 2 {
		o.Username, o.Password = auth[0], auth[1]
	}
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Do sends one command as redis-cli would, and fails the test on an error. A nil reply is nil.
func (s *Server) Do(tb testing.TB, args ...any) any {
	tb.Helper()
	c := s.Client(tb)
	defer func() { _ = c.Close() }()
	value, err := c.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatalf("redis %v: %v", args, err)
	}
	return value
}
