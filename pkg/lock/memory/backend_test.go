package memory_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/pkg/lock/locktest"
	"github.com/conch-dev/conch/pkg/lock/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(*testing.T) locktest.Harness {
		c := newClock()
		b := memory.New(memory.Options{Now: c.Now})
		return locktest.Harness{Backend: b, Store: b, Now: c.Now, Advance: c.Advance}
	})
}
