package integration

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// quickLease lets another process decide soon after the death of the one before.
const quickLease = "timings: {leaseDuration: 2s, renewDeadline: 1500ms, retryPeriod: 300ms}\n"

// soaking reports whether tests run at full counts and durations.
func soaking() bool { return os.Getenv("CONCH_SOAK") != "" }

// through puts a proxy between a conch and its API server.
func (s *side) through() (*rig.APIProxy, func(*rig.Options)) {
	s.w.t.Helper()
	p, err := rig.StartAPIProxy(s.w.t.Context(), s.cluster)
	s.w.Expect(err).NotTo(HaveOccurred())
	s.w.t.Cleanup(p.Close)
	return p, func(o *rig.Options) { o.Proxy, o.Extra = p, o.Extra+quickLease }
}

// crashPoints is how many writes of one lifecycle a crash is tried at, before and after each. It is
// more than a lifecycle has; a run in which the crash never came ends as well as the others.
const crashPoints = 9

// Each effect of design section 4 is a write to the API server, or an order to Redis between two of
// them; conch is killed right before and right after each write, and what it left must be found,
// ended or carried on by the conch that starts next.
func TestConchKilledAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exclusive", "leader"} {
		for n := 1; n <= crashPoints; n++ {
			for _, when := range []string{"before", "after"} {
				if !soaking() && (n%2 == 0) != (when == "before") {
					continue // the other half runs in a soak
				}
				t.Run(fmt.Sprintf("%s %s write %d", mode, when, n), func(t *testing.T) {
					t.Parallel()
					crashAt(t, mode, when, n)
				})
			}
		}
	}
}

func crashAt(t *testing.T, mode, when string, n int) {
	w := newWorld(t)
	proxy, via := w.east.through()
	victim := w.east.conch(1, via)[0]
	var once sync.Once
	kill := func(wr rig.Write) {
		if wr.N == n {
			once.Do(victim.Kill)
		}
	}
	if when == "before" {
		proxy.Before(kill)
	} else {
		proxy.After(kill)
	}
	oracle := ledger.Oracle(w.ledger)
	w.east.newLock("work")
	if mode == "leader" {
		oracle = w.east.watchLeaders()
		w.east.leader("work", 2)
	} else {
		w.east.exclusive("work", 2)
	}
	w.lifecycle(victim, mode)
	once.Do(func() {}) // from here on nobody is killed
	ledger.Verdict(t, oracle)
}

// lifecycle drives a lock from its first tenure to the third, with a conch that starts as soon as
// the first one was killed.
func (w *world) lifecycle(victim *rig.Conch, mode string) {
	revive := func() {
		if !victim.Alive() && len(w.east.conchs) == 1 {
			w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
		}
	}
	started := func() string { revive(); return describe(w.east.lock("work")) }
	prefix := "Held by " + w.east.id() + " started"
	for range 2 {
		w.Eventually(started, within, look).Should(HavePrefix(prefix))
		l := w.east.lock("work")
		if p := w.east.pod(l.Status.Holder.Name); p != nil && p.DeletionTimestamp == nil {
			w.east.remove(l.Status.Holder.Name)
		}
		w.Eventually(func() int64 {
			revive()
			if l := w.east.lock("work"); l.Status.StartedAt != nil {
				return l.Status.FencingToken
			}
			return 0
		}, within, look).Should(BeNumerically(">", l.Status.FencingToken))
	}
	w.Eventually(started, within, look).Should(HavePrefix(prefix))
	if mode == "leader" {
		w.east.leads("work")
	} else {
		w.east.runs("work", 1)
	}
}

// A decider that is paused after it wrote the holder into status, and wakes when the other cluster
// has taken over, lifts no gate.
func TestADeciderPausedBetweenStatusAndGateLiftsNothingWhenItWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy, via := w.east.through()
	sleeper := w.east.conch(1, via)[0]
	asleep := make(chan struct{})
	var once sync.Once
	proxy.After(func(wr rig.Write) {
		if wr.N == 2 { // Waiting was the first; this is Held, and the next one would lift the gate
			once.Do(func() {
				_ = sleeper.Pause()
				close(asleep)
			})
		}
	})
	w.east.newLock("work")
	w.east.exclusive("work", 1)
	w.Eventually(asleep, within).Should(BeClosed())
	w.west.conch(1)
	w.west.newLock("work")
	w.west.exclusive("work", 1)
	w.Eventually(func() string { return describe(w.west.lock("work")) }, within, look).Should(HavePrefix("Held by " + w.west.id() + " started"))
	w.west.runs("work", 0)
	w.Expect(sleeper.Resume()).To(Succeed())
	w.Eventually(func() string { return describe(w.east.lock("work")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	ledger.Verdict(t, w.ledger)
}

// The API server is away for longer than any Lease lasts, for the only replica.
func TestAnAPIServerThatIsAwayEndsNeitherConchNorLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy, via := w.east.through()
	conch := w.east.conch(1, via)[0]
	w.east.newLock("work")
	w.east.exclusive("work", 1)
	w.east.runs("work", 0)
	w.east.holds("work")
	before := w.east.unchanged("work")
	key := w.redisKey(w.east, "work")
	proxy.Cut()
	away := 12 * time.Second
	if soaking() {
		away = 40 * time.Second
	}
	c := w.redisClient()
	w.Consistently(func() time.Duration { return c.PTTL(t.Context(), key).Val() }, away, look).Should(BeNumerically(">", 2*time.Second))
	w.Expect(conch.Alive()).To(BeTrue())
	proxy.Heal()
	w.Consistently(func() string { return w.east.unchanged("work") }, 3*time.Second, look).Should(Equal(before))
	w.Expect(w.east.lock("work").Status.State).To(Equal(lockv1alpha1.State("Held")))
	ledger.Verdict(t, w.ledger)
}
