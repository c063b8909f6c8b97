package proxy_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 10 * time.Second

// rig is a server, a proxy before it, and a client that tries nothing twice.
func rig(t *testing.T) (*miniredis.Miniredis, *proxy.Proxy, *redis.Client) {
	t.Helper()
	m := miniredis.RunT(t)
	p := proxy.Start(t, m.Addr())
	c := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true, ReadTimeout: soon, PoolSize: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return m, p, c
}

func briefly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func TestFaultsOfSingleCommands(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode    proxy.Mode
		carried bool
		timeout bool
	}{
		"cut breaks the connection after the command":         {proxy.Cut, true, false},
		"a black hole drops the command":                      {proxy.BlackHole, false, true},
		"a swallowed reply belongs to a command that was run": {proxy.SwallowReply, true, true},
		"a held reply belongs to a command that was run":      {proxy.HoldReply, true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, p, c := rig(t)
			p.Set(proxy.Rule{Mode: tc.mode, Commands: []string{"set"}, Times: 1})
			err := c.Set(briefly(t), "k", "v", 0).Err()
			if err == nil || timedOut(err) != tc.timeout {
				t.Fatalf("SET: %v", err)
			}
			if m.Exists("k") != tc.carried {
				t.Fatalf("the command was carried out: %v", !tc.carried)
			}
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatalf("SET after the fault: %v", err)
			}
		})
	}
}

func TestOtherCommandsAreNotBefallen(t *testing.T) {
	t.Parallel()
	_, p, c := rig(t)
	p.Set(
		proxy.Rule{Mode: proxy.Cut, Commands: []string{"DEL"}},
		proxy.Rule{Mode: proxy.Cut, Commands: []string{"SET"}, Contains: "other"},
	)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "another", "v", 0).Err(); err == nil {
		t.Fatal("the second rule had no effect")
	}
	if p.Count("set") != 2 || p.Count("DEL") != 0 {
		t.Fatalf("counted %d SET and %d DEL", p.Count("set"), p.Count("DEL"))
	}
}

func TestHeldReplyComesWhenHealed(t *testing.T) {
	t.Parallel()
	m, p, c := rig(t)
	p.Set(proxy.Rule{Mode: proxy.HoldReply, Commands: []string{"SET"}})
	answer := make(chan error, 1)
	go func() { answer <- c.Set(t.Context(), "k", "v", 0).Err() }()
	for range time.Tick(time.Millisecond) {
		if m.Exists("k") {
			break
		}
	}
	select {
	case err := <-answer:
		t.Fatalf("the reply was not held: %v", err)
	default:
	}
	p.Heal()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
}

func TestDelayedReplyComesLater(t *testing.T) {
	t.Parallel()
	_, p, c := rig(t)
	p.Set(proxy.Rule{Mode: proxy.Delay, Delay: 50 * time.Millisecond})
	sent := time.Now()
	if _, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for range 20 {
			pipe.Ping(t.Context())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(sent); took < 50*time.Millisecond || took > 20*50*time.Millisecond {
		t.Fatalf("a pipeline of 20 took %s", took)
	}
}

func TestStaleReplyIsTheOneBefore(t *testing.T) {
	t.Parallel()
	_, p, c := rig(t)
	p.Set(proxy.Rule{Mode: proxy.StaleReply, Contains: "second"})
	pipe := c.Pipeline()
	pipe.Echo(t.Context(), "first")
	got := pipe.Echo(t.Context(), "second")
	if _, err := pipe.Exec(t.Context()); err != nil || got.Val() != "first" {
		t.Fatalf("%q, %v", got.Val(), err)
	}
}

func TestFaultsOfTheWholeLink(t *testing.T) {
	t.Parallel()
	for _, mode := range []proxy.Mode{proxy.Cut, proxy.Refuse, proxy.BlackHole, proxy.SwallowReply} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			_, p, c := rig(t)
			p.Set(proxy.Rule{Mode: mode})
			for range 2 {
				if err := c.Ping(briefly(t)).Err(); err == nil {
					t.Fatal("a command got through")
				}
			}
			p.Heal()
			deadline := time.Now().Add(soon)
			for c.Ping(t.Context()).Err() != nil {
				if time.Now().After(deadline) {
					t.Fatal("the link did not heal")
				}
			}
		})
	}
}

func TestSubscriptionsPassThrough(t *testing.T) {
	t.Parallel()
	m, p, c := rig(t)
	sub := c.Subscribe(t.Context(), "news")
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Publish("news", "hello")
	if got, err := sub.ReceiveMessage(t.Context()); err != nil || got.Payload != "hello" {
		t.Fatalf("%v, %v", got, err)
	}
	p.Break()
	if _, err := sub.Receive(t.Context()); err == nil {
		t.Fatal("the subscription did not break")
	}
}
