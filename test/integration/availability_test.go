package integration

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// unchanged returns what must stay the same about a lock and its holder while nothing is wrong.
func (s *side) unchanged(lock string) string {
	l := s.lock(lock)
	if l == nil || l.Status.Holder == nil {
		return "nobody holds"
	}
	p := s.pod(l.Status.Holder.Name)
	if p == nil || p.DeletionTimestamp != nil || len(p.Status.ContainerStatuses) == 0 {
		return "the holder is gone"
	}
	return fmt.Sprintf("%s %d restarts %d", l.Status.Holder.Identity, l.Status.FencingToken, p.Status.ContainerStatuses[0].RestartCount)
}

func TestADeciderKilledLosesNoLockAndTouchesNoPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2)
	w.east.runs("jobs", 1)
	w.east.holds("jobs")
	before := w.east.unchanged("jobs")
	w.east.decider().Kill()
	w.Consistently(func() string { return w.east.unchanged("jobs") }, 10*time.Second, look).Should(Equal(before))
	w.east.decider()
	w.Expect(w.redisClient().PTTL(t.Context(), w.redisKey(w.east, "jobs")).Val()).To(BeNumerically(">", 2*time.Second))
	ledger.Verdict(t, w.ledger)
}

// C91: what this cluster held before is its own.
func TestConchRestartedAdoptsWhatItHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.east.conch(1)[0]
	w.east.newLock("jobs", ttl(15))
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	w.east.holds("jobs")
	before := w.east.unchanged("jobs")
	first.Kill()
	w.east.conch(1)
	w.Consistently(func() string { return w.east.unchanged("jobs") }, 8*time.Second, look).Should(Equal(before))
	w.Expect(w.redisClient().PTTL(t.Context(), w.redisKey(w.east, "jobs")).Val()).To(BeNumerically(">", 10*time.Second))
	ledger.Verdict(t, w.ledger)
}

// Promise 3: nothing new starts because something failed.
func TestNothingStartsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.Expect(w.redis.Stop()).To(Succeed())
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2)
	w.Consistently(func() int {
		started := 0
		for _, p := range w.east.pods("jobs") {
			if len(p.Spec.SchedulingGates) == 0 {
				started++
			}
		}
		return started
	}, 4*time.Second, look).Should(BeZero())
	w.Eventually(func() string { return conditionsOf(w.east.lock("jobs")) }, within, look).
		Should(ContainSubstring("BackendReady=False"))
	w.Expect(w.redis.Cont()).To(Succeed())
	w.east.runs("jobs", 1)
	w.Eventually(func() string { return conditionsOf(w.east.lock("jobs")) }, within, look).
		Should(ContainSubstring("BackendReady=True"))
	ledger.Verdict(t, w.ledger)
}

// C29, cut off from Redis: a shared lock's holder stops before the lock runs out; one of a single
// cluster keeps running.
func TestCutOffFromRedisASharedHolderStopsInTimeAndAnotherKeepsRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("stops")
	w.east.newLock("stays", func(s *lockv1alpha1.DistributedLockSpec) { s.OnBackendLoss = lockv1alpha1.BackendLossHold })
	w.east.exclusive("stops", 1)
	w.east.exclusive("stays", 1)
	stops := w.east.runs("stops", 0)
	w.east.runs("stays", 0)
	w.east.holds("stops")
	w.east.holds("stays")
	stays := w.east.unchanged("stays")
	cut := time.Now()
	w.Expect(w.redis.Stop()).To(Succeed())
	w.Eventually(func() bool { return w.east.pod(stops.Name) == nil }, within, look).Should(BeTrue())
	w.Expect(time.Since(cut)).To(BeNumerically("<", 6*time.Second), "the holder must be dead before the key can run out")
	w.Expect(w.east.unchanged("stays")).To(Equal(stays))
	w.Expect(w.redis.Cont()).To(Succeed())
	w.east.runs("stops", 0)
	w.Expect(w.east.unchanged("stays")).To(HavePrefix(w.east.lock("stays").Status.Holder.Identity))
	ledger.Verdict(t, w.ledger)
}

// A decider that sleeps through its own lock's end changes nothing when it wakes.
func TestADeciderThatSleptWhileTheOtherClusterTookOverIsHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east := w.east.conch(1)[0]
	w.west.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	holder := w.east.runs("jobs", 0)
	w.east.holds("jobs")
	w.west.newLock("jobs")
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))

	w.Expect(east.Pause()).To(Succeed())
	w.east.remove(holder.Name) // its successor is gated, and conch of the east sleeps
	w.west.holds("jobs")
	w.west.runs("jobs", 0)
	w.Expect(east.Resume()).To(Succeed())
	w.Eventually(func() string { return describe(w.east.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	w.west.holds("jobs")
	ledger.Verdict(t, w.ledger)
}

func TestStatusAndEventsAreSilentWhileLocksAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	for i := range 5 {
		name := fmt.Sprintf("jobs-%d", i)
		w.east.newLock(name)
		w.east.exclusive(name, 1)
	}
	for i := range 5 {
		w.east.holds(fmt.Sprintf("jobs-%d", i))
	}
	w.Eventually(func() int { return w.writes(w.east, time.Second) }, within, look).Should(BeZero())
	w.Expect(w.writes(w.east, 6*time.Second)).To(BeZero())
}

// writes counts what conch writes in this world's namespace during a time, by the audit log.
func (w *world) writes(s *side, during time.Duration) int {
	mark, err := s.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	<-time.After(during)
	match := writesIn(w.ns)
	events, err := s.cluster.AuditSince(mark, match)
	w.Expect(err).NotTo(HaveOccurred())
	return len(events)
}
