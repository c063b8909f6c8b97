package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// C09: conch is told to end while releases are due. The locks would last a minute more, so keys that are gone were given back:
// at once where the status says Releasing, after the grace of a pod where nobody was there to see it end.
func TestReleasesThatAreDueWhenConchIsToldToEndAreCarriedOut(t *testing.T) {
	t.Parallel()
	const soon = 20 * time.Second // far from the minute after which the keys would run out
	w := newWorld(t)
	first := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
	locks := w.east.manyHeld("many", 20, ttl(longTTL), func(s *lockv1alpha1.DistributedLockSpec) { s.FenceGrace = seconds(1) })
	keys, c := w.keysOf(w.east, locks), w.redisClient()
	w.Expect(w.east.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.ns))).To(Succeed())
	w.Eventually(func() int { return w.missing(c, keys) }, within, time.Millisecond).Should(BeNumerically(">", 0))
	w.Expect(first.Stop()).To(Succeed())
	var due []string
	for i, name := range locks {
		if w.east.lock(name).Status.State == lockv1alpha1.StateReleasing {
			due = append(due, keys[i])
		}
	}
	w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
	if len(due) > 0 {
		w.Eventually(func() int { return w.missing(c, due) }, soon, look).Should(Equal(len(due)))
	}
	w.Eventually(func() int { return w.missing(c, keys) }, soon, look).Should(Equal(len(keys)))
	ledger.Verdict(t, w.ledger)
}

// C11: whoever decides releases what another replica acquired.
func TestALockAcquiredByOneReplicaIsReleasedByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2, func(o *rig.Options) { o.Extra += quickLease })
	w.east.newLock("jobs", ttl(longTTL))
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	key, c := w.redisKey(w.east, "jobs"), w.redisClient()
	w.east.holds("jobs")
	w.east.decider().Kill()
	w.east.decider()
	w.Expect(w.east.client.Delete(t.Context(), w.east.lock("jobs"))).To(Succeed())
	w.Eventually(func() int64 { return c.Exists(t.Context(), key).Val() }, 10*time.Second, look).Should(BeZero())
	ledger.Verdict(t, w.ledger)
}

// C11: the token is missing from the status, so nobody can prove that the key is ours. It is not deleted blindly: the lock ends in
// order, whether by the record on the holder or by the end of its ttl, and the next tenure has a higher token.
func TestALockWhoseTokenWasRemovedFromItsStatusIsNotReleasedBlindly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	held, key, c := w.east.holds("jobs"), w.redisKey(w.east, "jobs"), w.redisClient()
	first.Kill()
	l := held.DeepCopy()
	l.Status.Token = ""
	w.Expect(w.east.client.Status().Patch(t.Context(), l, client.MergeFrom(held))).To(Succeed())
	// Somebody else comes while nobody can tell: a release without the token would remove what is theirs.
	w.Expect(c.Set(t.Context(), key, "somebody else", 8*time.Second).Err()).To(Succeed())
	w.Expect(w.east.client.Delete(t.Context(), l)).To(Succeed())
	w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
	w.east.gone(held.Status.Holder.Name)
	w.Expect(c.Get(t.Context(), key).Val()).To(Equal("somebody else"))
	w.east.newLock("jobs")
	w.east.passesOn("jobs", held.Status.FencingToken)
	ledger.Verdict(t, w.ledger)
}

// C11: the same, with a holder that runs on.
func TestALockWhoseTokenWasRemovedFromItsStatusIsHeldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	held, key, c := w.east.holds("jobs"), w.redisKey(w.east, "jobs"), w.redisClient()
	l := held.DeepCopy()
	l.Status.Token = ""
	w.Expect(w.east.client.Status().Patch(t.Context(), l, client.MergeFrom(held))).To(Succeed())
	w.Eventually(func() string {
		l := w.east.lock("jobs")
		if l.Status.Token == "" || l.Status.Token != c.Get(t.Context(), key).Val() {
			return "token " + l.Status.Token
		}
		return describe(l)
	}, within, look).Should(HavePrefix("Held by " + w.east.id() + " started"))
	w.Expect(w.east.lock("jobs").Status.FencingToken).To(BeNumerically(">=", held.Status.FencingToken))
	ledger.Verdict(t, w.ledger)
}

// C19: the work is gone while conch is paused. The lock goes as soon as it is back, and a waiter of another cluster is served.
func TestWorkThatEndedWhileConchSleptIsReleasedWhenItWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east := w.east.conch(1)[0]
	w.west.conch(1)
	w.east.newLock("jobs", ttl(longTTL))
	w.east.exclusive("jobs", 1)
	holder := w.east.runs("jobs", 0)
	w.east.holds("jobs")
	w.west.newLock("jobs", ttl(longTTL))
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
	w.Expect(east.Pause()).To(Succeed())
	_, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "delete", "deployment", "jobs", "--wait=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.east.gone(holder.Name)
	w.Expect(east.Resume()).To(Succeed())
	awake := time.Now()
	w.west.runs("jobs", 0)
	w.Expect(time.Since(awake)).To(BeNumerically("<", 8*time.Second))
	ledger.Verdict(t, w.ledger)
}

// C19: a pod that ends by itself while nobody watches.
func TestAPodThatCompletesGivesTheLockToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
	w.east.newLock("jobs", ttl(longTTL))
	for _, name := range []string{"one", "two", "three"} {
		w.east.bare("jobs", name, flags("-run-for", "2s"))
		w.Eventually(func() *corev1.Pod { return w.east.pod(name) }, within, look).ShouldNot(BeNil())
	}
	w.Eventually(func() int { return w.starts("jobs") }, within, look).Should(Equal(2))
	w.Expect(east.Pause()).To(Succeed()) // the second one ends while conch sleeps
	w.Eventually(func() int { return len(w.finished("jobs")) }, within, look).Should(Equal(2))
	w.Expect(east.Resume()).To(Succeed())
	w.Eventually(func() int { return len(w.finished("jobs")) }, within, look).Should(Equal(3))
	c := w.redisClient()
	w.Eventually(func() int64 { return c.Exists(t.Context(), w.keyOf("jobs")).Val() }, within, look).Should(BeZero())
	w.Expect(w.starts("jobs")).To(Equal(3))
	ledger.Verdict(t, w.ledger)
}

func (w *world) finished(lock string) []string {
	var names []string
	for _, p := range w.east.pods(lock) {
		if p.Status.Phase == corev1.PodSucceeded {
			names = append(names, p.Name)
		}
	}
	return names
}

// C21, C41: two workloads pass one lock back and forth. Each holder's key is renewed, no release is taken for a loss, and conch
// deletes no pod.
func TestTwoWorkloadsPassOneLockBackAndForth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("jobs")
	w.east.exclusive("a", 1, wants("jobs"), grace(1))
	w.east.exclusive("b", 1, wants("jobs"), grace(1))
	mark, err := w.east.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	c, token := w.redisClient(), int64(0)
	for range rounds(6, 200) {
		l := w.east.passesOn("jobs", token)
		token = l.Status.FencingToken
		w.Eventually(func() bool {
			p := w.east.pod(l.Status.Holder.Name)
			return p != nil && p.Status.Phase == corev1.PodRunning
		}, within, look).Should(BeTrue())
		w.Expect(c.PTTL(t.Context(), w.keyOf("jobs")).Val()).To(BeNumerically(">", 2*time.Second))
		w.east.remove(l.Status.Holder.Name)
	}
	l := w.east.passesOn("jobs", token)
	w.Consistently(func() time.Duration { return c.PTTL(t.Context(), w.keyOf("jobs")).Val() }, 4*time.Second, look).Should(BeNumerically(">", 2*time.Second))
	for _, tenure := range l.Status.History {
		w.Expect(tenure.Reason).To(Equal(lockv1alpha1.ReasonHolderGone))
	}
	byConch := writesIn(w.ns)
	stops, err := w.east.cluster.AuditSince(mark, func(e cluster.AuditEvent) bool { return byConch(e) && e.Verb == "delete" })
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(stops).To(BeEmpty())
	w.Expect(w.east.events()).NotTo(HaveKey(lockv1alpha1.ReasonLockLost))
	ledger.Verdict(t, w.ledger)
}

// C31: an object that a finalizer keeps is no holder once its containers have ended, and not before.
func TestAPodThatAFinalizerKeepsHoldsOnlyUntilItsContainersEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.west.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2, flags("-ignore-term"), grace(5), func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"example.com/keep"} })
	t.Cleanup(func() { w.unpin("jobs") })
	first := w.east.runs("jobs", 1)
	w.east.holds("jobs")
	w.west.newLock("jobs")
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
	w.east.remove(first.Name)
	w.Eventually(func() int { return w.starts("jobs") }, within, look).Should(Equal(2))
	still := w.east.pod(first.Name)
	w.Expect(still).NotTo(BeNil())
	w.Expect(still.Status.ContainerStatuses[0].State.Terminated).NotTo(BeNil())
	ledger.Verdict(t, w.ledger)
}

// unpin takes the finalizers off, so that the namespace can go.
func (w *world) unpin(lock string) {
	_, err := w.east.cluster.Kubectl(context.Background(), "-n", w.ns, "delete", "deployment", lock, "--cascade=orphan")
	w.Expect(err).NotTo(HaveOccurred())
	names, err := w.east.cluster.Kubectl(context.Background(), "-n", w.ns, "get", "pods", "-l", "app="+lock, "-o", "name")
	w.Expect(err).NotTo(HaveOccurred())
	for name := range strings.FieldsSeq(names) {
		_, _ = w.east.cluster.Kubectl(context.Background(), "-n", w.ns, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
}

// C07: conch wakes when another cluster has the lock, and its own lock is deleted at that moment. What it gives back is not the
// other's key.
func TestALateReleaseLeavesTheNextHoldersKeyAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east := w.east.conch(1)[0]
	w.west.conch(1)
	w.east.newLock("jobs", ttl(5))
	w.east.exclusive("jobs", 1, grace(1))
	holder := w.east.runs("jobs", 0)
	w.east.holds("jobs")
	w.west.newLock("jobs", ttl(5))
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
	w.Expect(east.Pause()).To(Succeed())
	w.east.remove(holder.Name)
	held := w.west.holds("jobs")
	w.Expect(w.east.client.Delete(t.Context(), w.east.lock("jobs"))).To(Succeed())
	w.Expect(east.Resume()).To(Succeed())
	c := w.redisClient()
	w.Consistently(func() bool {
		return c.Get(t.Context(), w.keyOf("jobs")).Val() == held.Status.Token && c.PTTL(t.Context(), w.keyOf("jobs")).Val() > time.Second
	}, 5*time.Second, look).Should(BeTrue())
	w.west.holds("jobs")
	ledger.Verdict(t, w.ledger)
}
