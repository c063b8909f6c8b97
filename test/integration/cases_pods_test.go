package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

func named(key string) func(*lockv1alpha1.DistributedLockSpec) {
	return func(s *lockv1alpha1.DistributedLockSpec) { s.Key = key }
}

// C133: several references to one lock do not share it. Two locks with one key: the second one waits for the first, and nothing
// of the first is swept away as a left-over.
func TestTwoLocksWithOneKeyExcludeEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("one", named("shared"))
	w.east.exclusive("one", 1, contends("shared"))
	first := w.east.runs("one", 0)
	w.east.holds("one")
	before, c := w.east.unchanged("one"), w.redisClient()
	value := c.Get(t.Context(), w.keyOf("shared")).Val()
	w.east.newLock("two", named("shared"))
	w.east.exclusive("two", 1, contends("shared"))
	w.east.says("two", lockv1alpha1.ConditionHeld, "False HeldBeside: held by "+first.Name)
	w.east.gatedOnly("two", 1, 4*time.Second)
	w.Expect(c.Get(t.Context(), w.keyOf("shared")).Val()).To(Equal(value))
	w.Expect(w.east.unchanged("one")).To(Equal(before))
	_, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "delete", "deployment", "one", "--wait=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.east.runs("two", 0)
	w.east.holds("two")
	ledger.Verdict(t, w.ledger)
}

// A pod without its gate, as where no policy sets it, is deleted while another one holds. It is kept from starting here, because
// until it is found nothing else would keep it. C119, C147.
func TestAPodThatLacksItsGateIsStoppedBesideTheHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.agent.NeverStart("bypass")
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	w.east.holds("jobs")
	before := w.east.unchanged("jobs")
	w.east.bare("jobs", "bypass", ungated)
	w.east.gone("bypass")
	w.Consistently(func() string { return w.east.unchanged("jobs") }, 2*time.Second, look).Should(Equal(before))
	ledger.Verdict(t, w.ledger)
}

// Nobody holds: it may not work without having been let in either, and a gated one runs after its end.
func TestAPodThatLacksItsGateIsStoppedWhereNobodyHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.agent.NeverStart("bypass")
	w.east.newLock("jobs")
	w.east.bare("jobs", "bypass", ungated)
	w.east.bare("jobs", "gated")
	w.east.gone("bypass")
	w.east.passesOn("jobs", 0)
	w.Expect(w.east.lock("jobs").Status.Holder.Name).To(Equal("gated"))
	ledger.Verdict(t, w.ledger)
}

// While Redis does not answer it might be the holder for all that is known, so it is left alone, and nothing starts beside it.
func TestAPodThatLacksItsGateIsLeftAloneWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.agent.NeverStart("bypass")
	w.Expect(w.redis.Stop()).To(Succeed())
	w.east.newLock("jobs")
	w.east.bare("jobs", "bypass", ungated)
	w.east.bare("jobs", "gated")
	w.Consistently(func() bool {
		bypass, gated := w.east.pod("bypass"), w.east.pod("gated")
		return bypass != nil && bypass.DeletionTimestamp == nil && len(gated.Spec.SchedulingGates) == 1
	}, 4*time.Second, look).Should(BeTrue())
	w.Expect(w.redis.Cont()).To(Succeed())
	w.east.gone("bypass")
	w.east.passesOn("jobs", 0)
	ledger.Verdict(t, w.ledger)
}

// C127: a lock that does not exist lets nobody in; it does once it is made.
func TestAPodWaitsForALockThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.exclusive("jobs", 2)
	w.east.leader("web", 1)
	w.east.gatedOnly("jobs", 2, 3*time.Second)
	for _, p := range w.east.pods("web") {
		w.Expect(p.Labels).NotTo(HaveKey(lockv1alpha1.LabelRole))
	}
	w.Eventually(func() map[string]int { return w.east.eventsOn("Pod") }, within, look).Should(HaveKey("LockNotFound"))
	w.east.newLock("jobs")
	w.east.newLock("web")
	w.east.runs("jobs", 1)
	w.east.leads("web")
	ledger.Verdict(t, w.ledger)
}

// C127: what is found out about a lock that is missing is not found out over and over.
func TestALockThatDoesNotExistCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.exclusive("jobs", 2)
	w.east.gatedOnly("jobs", 2, time.Second)
	mark, err := w.east.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	w.east.gatedOnly("jobs", 2, 3*time.Second)
	asked, err := w.east.cluster.AuditSince(mark, readsIn(w.ns))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(len(asked)).To(BeNumerically("<", 20))
	ledger.Verdict(t, w.ledger)
}

// C135: names that would be taken apart by Redis, a shell or an escape stand in Redis one for one.
func TestKeysWithUnusualCharactersStandInRedisOneForOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	c := w.redisClient()
	stands := map[string]string{
		"a{b}%c d":   "a%7Bb%7D%25c d",
		"a%7Bb%7D":   "a%257Bb%257D",
		"x:y/z*?[1]": "x:y/z*?[1]",
		"замок":      "замок",
		"קרן-1":      "קרן-1",
	}
	names := map[string]string{}
	for key := range stands {
		name := "lock-" + string(rune('a'+len(names)))
		names[key] = name
		w.east.newLock(name, named(key))
		w.east.bare(name, name, contends("key"+name))
	}
	seen := map[string]bool{}
	for key, as := range stands {
		l := w.east.holds(names[key])
		w.Expect(c.Get(t.Context(), w.keyOf(as)).Val()).To(Equal(l.Status.Token), key)
		w.Expect(w.redisKey(w.east, names[key])).To(Equal(w.keyOf(as)))
		seen[as] = true
	}
	w.Expect(seen).To(HaveLen(len(stands)))
	ledger.Verdict(t, w.ledger)
}

// A raw key is shared with programs that know nothing of conch, so it takes the operator's word.
func TestARawKeyThatIsNotAllowedIsReportedAtOnceAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs", func(s *lockv1alpha1.DistributedLockSpec) { s.RawKey = "orders" })
	w.Eventually(func() string { return w.east.reads("jobs", lockv1alpha1.ConditionReady) }, time.Second, 10*time.Millisecond).
		Should(HavePrefix(`False KeyNotAllowed: spec.rawKey "orders" is not allowed for namespace "` + w.ns + `"`))
	w.east.exclusive("jobs", 1)
	w.east.gatedOnly("jobs", 1, 2*time.Second)
	w.Expect(w.redisClient().Exists(t.Context(), "orders").Val()).To(BeZero())
	ledger.Verdict(t, w.ledger)
}

// C133: three pods of one workload are three contenders. Each tenure is one pod's, and an unclean end counts like any other.
func TestEachPodOfAWorkloadHoldsForItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	for _, name := range []string{"one", "two", "three"} {
		w.east.bare("jobs", name, grace(1))
	}
	token, held := int64(0), map[string]bool{}
	for range 3 {
		l := w.east.passesOn("jobs", token)
		token = l.Status.FencingToken
		held[l.Status.Holder.Name] = true
		w.Eventually(func() corev1.PodPhase { return w.east.pod(l.Status.Holder.Name).Status.Phase }, within, look).Should(Equal(corev1.PodRunning))
		w.east.remove(l.Status.Holder.Name)
	}
	w.Expect(held).To(HaveLen(3))
	ledger.Verdict(t, w.ledger)
}
