package redisnode_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/conch-dev/conch/pkg/lock/locktest"
)

func TestRedisKeepsTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		c := &travel{space: open(t, shared.Addr())}
		return locktest.Harness{Backend: c, Store: c, Now: c.Now, Advance: c.Advance}
	})
}

// undescribed hides lock.Describer, because miniredis does not know INFO's sections.
type undescribed struct{ *travel }

func (undescribed) Describe() {}

// miniredis shows that nothing depends on one server's ways. Its clock is set, so no stored time has to be moved.
func TestMiniredisKeepsTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		m := miniredis.RunT(t)
		c := &travel{space: open(t, m.Addr())}
		m.SetTime(c.Now())
		return locktest.Harness{Backend: undescribed{c}, Store: c, Now: c.Now, Advance: func(d time.Duration) {
			c.add(d)
			m.FastForward(d)
			m.SetTime(c.Now())
		}}
	})
}
