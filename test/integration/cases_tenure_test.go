package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// C95: a workload that cannot start gives the lock back to one that waits, and stands back for a while.
func TestAHolderThatDoesNotStartGivesTheLockToOneThatCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.agent.NeverStart("broken-*")
	w.east.newLock("jobs", func(s *lockv1alpha1.DistributedLockSpec) { s.StartDeadline = seconds(2) })
	w.east.exclusive("broken", 1, wants("jobs"))
	broken := w.east.holds("jobs")
	w.Consistently(func() int64 { return w.east.lock("jobs").Status.FencingToken }, 3*time.Second, look).
		Should(Equal(broken.Status.FencingToken), "nobody waits, so it keeps the lock")
	w.east.exclusive("works", 1, wants("jobs"))
	first := w.east.runs("works", 0)
	l := w.east.holds("jobs")
	w.Expect(l.Status.History[0]).To(And(HaveField("Holder", broken.Status.Holder.Name), HaveField("Reason", lockv1alpha1.ReasonStartDeadlineExceeded)))
	w.Eventually(w.east.events, within, look).Should(HaveKey(lockv1alpha1.ReasonStartDeadlineExceeded))
	w.east.remove(first.Name) // the broken one waits, but stands back
	next := w.east.passesOn("jobs", l.Status.FencingToken)
	w.Expect(next.Status.Holder.Name).To(HavePrefix("works-"))
	ledger.Verdict(t, w.ledger)
}

func TestATenureEndsAfterMaxHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs", func(s *lockv1alpha1.DistributedLockSpec) { s.MaxHold = seconds(5) })
	w.east.exclusive("jobs", 2)
	first := w.east.holds("jobs")
	after := w.east.passesOn("jobs", first.Status.FencingToken)
	w.Expect(after.Status.History[0].Reason).To(Equal(lockv1alpha1.ReasonMaxHoldReached))
	held := after.Status.History[0].To.Sub(after.Status.History[0].From.Time)
	w.Expect(held).To(And(BeNumerically(">=", 5*time.Second), BeNumerically("<", 12*time.Second)))
	ledger.Verdict(t, w.ledger)
}

// C89: an edit of the ttl counts from the next renewal on, and leaves no gap.
func TestAChangedTTLIsFollowedWhileTheLockIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	w.east.holds("jobs")
	before, c := w.east.unchanged("jobs"), w.redisClient()
	rest := func() time.Duration { return c.PTTL(t.Context(), w.keyOf("jobs")).Val() }
	w.east.change("jobs", ttl(30))
	w.Eventually(rest, within, look).Should(BeNumerically(">", 25*time.Second))
	w.Consistently(rest, 2*time.Second, look).Should(BeNumerically(">", 20*time.Second))
	w.east.change("jobs", ttl(5))
	w.Eventually(rest, within, look).Should(BeNumerically("<=", 5*time.Second))
	w.Consistently(rest, 6*time.Second, look).Should(And(BeNumerically(">", time.Second), BeNumerically("<=", 5*time.Second)))
	w.Expect(w.east.unchanged("jobs")).To(Equal(before))
	w.Expect(w.east.lock("jobs").Status.Effective.TTL.Duration).To(Equal(5 * time.Second))
	ledger.Verdict(t, w.ledger)
}

// C129: how long somebody waits has nothing to do with the ttl.
func TestAWaiterOutlastsManyTTLs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.west.conch(1)
	w.east.newLock("jobs", ttl(5))
	w.east.exclusive("jobs", 1)
	w.east.holds("jobs")
	w.west.newLock("jobs", ttl(5))
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
	w.Consistently(func() string { return describe(w.west.lock("jobs")) }, 11*time.Second, look).Should(HavePrefix("Waiting by " + w.east.id()))
	_, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "delete", "deployment", "jobs", "--wait=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.west.runs("jobs", 0)
	ledger.Verdict(t, w.ledger)
}

// The object is made again while nobody looks. The holder's own record, and Redis, say whose the lock is (C101).
func TestALockThatWasMadeAgainWhileConchWasAwayIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
	w.east.newLock("jobs", ttl(30))
	w.east.exclusive("jobs", 2)
	w.east.runs("jobs", 1)
	w.east.holds("jobs")
	before, old := w.east.unchanged("jobs"), w.east.lock("jobs")
	first.Kill()
	w.Expect(w.east.client.Delete(t.Context(), old)).To(Succeed())
	w.Eventually(func() *lockv1alpha1.DistributedLock { return w.east.lock("jobs") }, within, look).Should(BeNil())
	w.east.newLock("jobs", ttl(30))
	w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
	l := w.east.holds("jobs")
	w.Expect(l.UID).NotTo(Equal(old.UID))
	w.Consistently(func() string { return w.east.unchanged("jobs") }, 3*time.Second, look).Should(Equal(before))
	c := w.redisClient()
	w.Expect(c.Get(t.Context(), w.keyOf("jobs")).Val()).To(Equal(l.Status.Token))
	w.Expect(c.PTTL(t.Context(), w.keyOf("jobs")).Val()).To(BeNumerically(">", 15*time.Second))
	w.Eventually(w.east.events, within, look).Should(HaveKey("LockAdopted"))
	ledger.Verdict(t, w.ledger)
}

// The same, while conch looks: deleting a lock ends its tenure, and whoever is waiting begins the next.
func TestALockThatWasMadeAgainAtOnceGoesOnWithAnotherTenure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs", ttl(longTTL))
	w.east.exclusive("jobs", 2)
	w.east.runs("jobs", 1)
	held := w.east.holds("jobs")
	w.Expect(w.east.client.Delete(t.Context(), held, client.PropagationPolicy("Background"))).To(Succeed())
	w.east.newLock("jobs", ttl(longTTL))
	w.Eventually(func() int { return len(w.east.pods("jobs")) }, within, look).Should(Equal(2))
	w.east.runs("jobs", 1)
	w.east.holds("jobs")
	ledger.Verdict(t, w.ledger)
}

// What the status says of the holder is what Redis, the pod and its node say.
func TestTheStatusNamesTheHolderAsRedisAndItsNodeDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	p := w.east.runs("jobs", 0)
	w.Eventually(func() string { return w.east.holds("jobs").Status.Holder.BootID }, within, look).ShouldNot(BeEmpty())
	l := w.east.lock("jobs")
	var node corev1.Node
	w.Expect(w.east.client.Get(t.Context(), client.ObjectKey{Name: p.Spec.NodeName}, &node)).To(Succeed())
	w.Expect(*l.Status.Holder).To(And(
		HaveField("Cluster", w.east.id()), HaveField("Kind", "Pod"), HaveField("Name", p.Name), HaveField("UID", p.UID),
		HaveField("Node", node.Name), HaveField("BootID", node.Status.NodeInfo.BootID),
		HaveField("Identity", MatchRegexp("^%s/%s/Pod/%s/%s/[0-9a-f]{16}$", w.east.id(), w.ns, p.Name, p.UID)),
	))
	w.Expect(w.redisClient().Get(t.Context(), w.keyOf("jobs")).Val()).To(Equal(l.Status.Token))
	w.Expect(p.Annotations).To(HaveKeyWithValue(lockv1alpha1.AnnotationHolderIdentity, l.Status.Holder.Identity))
	ledger.Verdict(t, w.ledger)
}
