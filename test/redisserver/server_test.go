package redisserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerAnswersOnItsPort(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	s.Do(t, "SET", "k", "v")
	if got := s.Do(t, "GET", "k"); got != "v" {
		t.Fatalf("GET k = %v", got)
	}
}

func TestRestartedServerIsEmptyAndHasTheSameAddress(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	addr := s.Addr()
	s.Do(t, "SET", "k", "v")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Do(t, "GET", "k"); got != nil || s.Addr() != addr {
		t.Fatalf("GET k = %v at %s, was at %s", got, s.Addr(), addr)
	}
}

func TestPausedServerKeepsConnectionsAndDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	c := s.Client(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Fatal("a paused server answered")
	}
	if err := s.Cont(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestKilledServerRefusesConnections(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	s.Kill()
	s.Kill()
	if err := s.Client(t).Ping(t.Context()).Err(); err == nil {
		t.Fatal("a killed server answered")
	}
	if s.Stop() == nil {
		t.Fatal("a killed server was paused")
	}
}

func TestWrongArgumentsQuoteTheLog(t *testing.T) {
	t.Parallel()
	if _, err := redisserver.New(t.Context(), t.TempDir(), "--no-such-option", "1"); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("a server with wrong arguments: %v", err)
	}
}

func TestPasswordIsPassedOn(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t, "--requirepass", "secret")
	if err := s.Client(t).Get(t.Context(), "k").Err(); !redis.HasErrorPrefix(err, "NOAUTH") {
		t.Fatalf("without a password: %v", err)
	}
	if err := s.Client(t, "default", "secret").Get(t.Context(), "k").Err(); err != redis.Nil {
		t.Fatalf("with the password: %v", err)
	}
}
