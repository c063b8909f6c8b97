package redisnode_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/redisserver"
)

// shared is one server for all tests that only need a key space of their own, which is a database for the keys and a prefix for the
// channels.
var (
	shared    *redisserver.Server
	databases = []string{"--databases", "10000"}
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	redisnode.RedirectLog(func(string) {})
	dir, err := os.MkdirTemp("", "redisnode")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if shared, err = redisserver.New(context.Background(), dir, databases...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	shared.Kill()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var spaces atomic.Int64

// patience is a timeout for tests that do not want one, on a machine that is busy.
const patience = 5 * time.Second

// space is a key space of its own on a server, and what a test does there behind the backend's back.
type space struct {
	*testing.T
	*redisnode.Backend
	prefix string
	admin  *redis.Client
}

// open makes a backend and a space for it. Change may alter the options.
func open(t *testing.T, addr string, change ...func(*redisnode.Options)) *space {
	t.Helper()
	n := int(spaces.Add(1))
	o := redisnode.Options{Prefix: fmt.Sprintf("t%d:", n), DB: n, Addresses: []string{addr}, Timeout: patience}
	for _, c := range change {
		c(&o)
	}
	b, err := redisnode.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := &space{T: t, Backend: b, prefix: o.Prefix}
	s.admin = redis.NewClient(&redis.Options{Addr: addr, DB: o.DB, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = s.admin.Close() })
	return s
}

// do runs a command as an operator would.
func (s *space) do(args ...any) any {
	s.Helper()
	value, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		s.Fatalf("redis %v: %v", args, err)
	}
	return value
}

func (s *space) name(k lock.Key) string {
	if k.Tick != 0 {
		return s.helper(k.Plain(), strings.TrimPrefix(strings.TrimPrefix(k.String(), k.Name), ":"))
	}
	if k.Raw {
		return k.Name
	}
	return s.prefix + "{" + k.Encoded() + "}"
}

func (s *space) helper(k lock.Key, which string) string {
	if k.Raw {
		return s.prefix + "{" + k.Name + "}:raw:" + which
	}
	return s.name(k) + ":" + which
}

func (s *space) Flush() { s.do("FLUSHDB") }

func (s *space) Delete(k lock.Key) { s.do("DEL", s.name(k)) }

func (s *space) Plant(k lock.Key, kind, text string, ttl time.Duration) {
	s.Delete(k)
	switch kind {
	case "hash":
		s.do("HSET", s.name(k), "f", text)
	case "list":
		s.do("RPUSH", s.name(k), text)
	default:
		s.do("SET", s.name(k), text)
	}
	if ttl > 0 {
		s.do("PEXPIRE", s.name(k), ttl.Milliseconds())
	}
}

func (s *space) SetFence(k lock.Key, text string) {
	s.do("DEL", s.helper(k, "last"))
	s.do("SET", s.helper(k, "fence"), text, "PX", 1000000)
}

// shift brings everything that is stored nearer to its end, which is as if time had passed: a server's clock cannot be set.
const shift = `
local d = tonumber(ARGV[1])
for _, k in ipairs(KEYS) do
  local left = redis.call('PTTL', k)
  if left >= 0 and left <= d then redis.call('DEL', k)
  elseif left >= 0 then redis.call('PEXPIRE', k, left - d) end
  if redis.call('TYPE', k).ok == 'hash' then
    for _, f in ipairs({'validUntil', 'notBefore'}) do
      local at = tonumber(redis.call('HGET', k, f) or '')
      if at and at > 0 then redis.call('HSET', k, f, string.format('%.0f', at - d)) end
    end
  end
end
return #KEYS`

const serverTime = `local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)`

// travel is the backend at a clock that is ahead of the real one, on a server whose stored times are moved instead.
type travel struct {
	*space

	mu    sync.Mutex
	ahead time.Duration
}

func (c *travel) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *travel) Advance(d time.Duration) {
	c.tick()
	keys := c.do("KEYS", "*").([]any)
	c.do(slices.Concat([]any{"EVAL", shift, len(keys)}, keys, []any{d.Milliseconds()})...)
	c.add(d)
}

// tick lets the server's clock go on by at least a millisecond.
func (c *travel) tick() {
	began := c.do("EVAL", serverTime, 0)
	for now := began; now == began; {
		now = c.do("EVAL", serverTime, 0)
	}
}

func (c *travel) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func (c *travel) Acquire(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	a, err := c.Backend.Acquire(ctx, r)
	a.Grant = c.moved(a.Grant)
	return a, err
}

func (c *travel) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	results := c.Backend.Renew(ctx, extensions)
	for i := range results {
		results[i].Grant = c.moved(results[i].Grant)
	}
	return results
}

func (c *travel) moved(g lock.Grant) lock.Grant {
	if !g.ValidUntil.IsZero() {
		c.mu.Lock()
		defer c.mu.Unlock()
		g.ValidUntil = g.ValidUntil.Add(c.ahead)
	}
	return g
}

func (c *travel) Stamp(ctx context.Context, g lock.Grant, stage lock.Stage) (lock.Grant, error) {
	stamped, err := c.Backend.Stamp(ctx, g, stage)
	return c.moved(stamped), err
}
