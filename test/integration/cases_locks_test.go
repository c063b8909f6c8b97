package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// The tests here are about C93. To the ledger all pods of a workload work under the workload's name, whichever
// lock they want, so that two of them never work together.

func wantsLock(name string) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Annotations[lockv1alpha1.AnnotationLock] = name }
}

// under creates a Deployment of one exclusive pod that wants a lock by name.
func (s *side) under(lock, name string, mods ...func(*corev1.PodTemplateSpec)) {
	s.w.t.Helper()
	s.deployment(name, 1, s.workload(name, "exclusive"), rolling, func(d *appsv1.DeploymentSpec) {
		for _, mod := range append(mods, wantsLock(lock)) {
			mod(&d.Template)
		}
	})
}

// A workload names another lock while it holds one. The one before is given back when the last pod that wanted it is dead,
// and nothing of the workload starts under the new one before that.
func TestAWorkloadThatNamesAnotherLockGivesTheOneBeforeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("before", ttl(longTTL))
	w.east.newLock("after", ttl(longTTL))
	w.east.under("before", "web")
	w.east.holds("before")
	w.east.roll("web", "2", wantsLock("after"))
	w.east.holds("after")
	w.east.rolledOut("deployment", "web")
	w.east.free("before")
	w.Expect(w.redisClient().Exists(t.Context(), w.keyOf("after")).Val()).To(BeEquivalentTo(1))
	ledger.Verdict(t, w.ledger)
}

// Back and forth between two locks that are free, faster than a rollout takes, with conch killed on the way.
func TestAWorkloadThatGoesBackAndForthBetweenTwoLocksNeverOverlaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quick := func(o *rig.Options) { o.Extra += quickLease }
	w.east.conch(1, quick)
	w.east.newLock("one", ttl(longTTL))
	w.east.newLock("two", ttl(longTTL))
	w.east.under("one", "web", flags("-ignore-term"), grace(1))
	w.east.holds("one")
	names := []string{"one", "two"}
	for i := range rounds(4, 40) {
		w.east.roll("web", string(rune('a'+i%26)), wantsLock(names[(i+1)%2]))
		if i == 1 {
			w.east.conchs[0].Kill()
			w.east.conch(1, quick)
		}
		w.Eventually(func() bool { return len(w.east.pods("web")) > 1 }, within, look).Should(BeTrue())
	}
	w.east.holds("one")
	w.east.rolledOut("deployment", "web")
	// Whoever was killed may have left an attempt of its own in Redis, which runs out.
	w.Eventually(func() string { return describe(w.east.lock("two")) }, within, look).Should(HavePrefix("Idle without holder"))
	ledger.Verdict(t, w.ledger)
}

// A StatefulSet rolls its highest pod first, whose sibling of the older revision holds the lock of before. It is stopped in
// order, and comes back wanting the new one.
func TestAStatefulSetThatNamesAnotherLockRollsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("before", ttl(longTTL))
	w.east.newLock("after", ttl(longTTL))
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "web",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: w.east.workload("web", "exclusive"),
		},
	}
	wantsLock("before")(&set.Spec.Template)
	w.Expect(w.east.client.Create(t.Context(), set)).To(Succeed())
	w.east.holdsVersion("before", "")
	// Whichever pod holds, the other one is the first that waits for the new lock.
	w.Eventually(func() error {
		if err := w.east.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(&set.Spec.Template, "2", []func(*corev1.PodTemplateSpec){wantsLock("after")})
		return w.east.client.Update(t.Context(), set)
	}, within, look).Should(Succeed())
	w.east.holdsVersion("after", "2")
	w.Eventually(func() []string {
		var wants []string
		for _, p := range w.east.pods("web") {
			if p.DeletionTimestamp == nil {
				wants = append(wants, p.Annotations[lockv1alpha1.AnnotationLock])
			}
		}
		return wants
	}, within, look).Should(Equal([]string{"after", "after"}))
	w.east.free("before")
	ledger.Verdict(t, w.ledger)
}

// A workload goes on under its lock of before while another cluster has the new one, and nobody waits for it.
func TestAWorkloadKeepsItsLockUntilItGetsTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range []*side{w.east, w.west} {
		s.conch(1)
		s.newLock("before", ttl(longTTL))
		s.newLock("after", ttl(longTTL))
	}
	w.west.under("after", "other")
	w.west.holds("after")
	w.east.under("before", "web")
	first := w.east.holds("before")
	w.east.roll("web", "2", wantsLock("after"))
	w.Eventually(func() string { return describe(w.east.lock("after")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	w.Consistently(func() string { return w.east.lock("before").Status.Token }, 2*time.Second, look).Should(Equal(first.Status.Token))

	// Now west wants what east has, and east what west has: the two swap.
	w.west.roll("other", "2", wantsLock("before"))
	w.east.holdsVersion("after", "2")
	w.west.holdsVersion("before", "2")
	w.east.rolledOut("deployment", "web")
	w.west.rolledOut("deployment", "other")
	ledger.Verdict(t, w.ledger)
}

// Two workloads of one cluster want each other's lock, and neither would ever get it if both only waited.
func TestTwoWorkloadsSwapTheirLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("one", ttl(longTTL))
	w.east.newLock("two", ttl(longTTL))
	w.east.under("one", "web")
	w.east.under("two", "shop")
	one, two := w.east.holds("one"), w.east.holds("two")
	w.east.roll("web", "2", wantsLock("two"))
	w.east.roll("shop", "2", wantsLock("one"))
	after := w.east.holdsVersion("one", "2")
	w.Expect(after.Labels["app"]).To(Equal("shop"))
	after = w.east.holdsVersion("two", "2")
	w.Expect(after.Labels["app"]).To(Equal("web"))
	w.east.rolledOut("deployment", "web")
	w.east.rolledOut("deployment", "shop")
	w.Expect(w.east.holds("one").Status.FencingToken).To(BeNumerically(">", one.Status.FencingToken))
	w.Expect(w.east.holds("two").Status.FencingToken).To(BeNumerically(">", two.Status.FencingToken))
	ledger.Verdict(t, w.ledger)
}

// The pod that works under the lock of before is removed by force, and works on. No list of pods shows it any more, but its
// lock still names it.
func TestAForceDeletedPodUnderTheLockOfBeforeIsGivenItsGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("before", ttl(longTTL))
	w.east.newLock("after", ttl(longTTL))
	w.Expect(w.redisClient().Set(t.Context(), w.keyOf("after"), "somebody else", time.Hour).Err()).To(Succeed())
	w.east.under("before", "web", flags("-ignore-term"), grace(4))
	first := w.east.runs("web", 0)
	w.east.roll("web", "2", wantsLock("after"))
	w.Eventually(func() string { return w.east.reads("after", "Held") }, within, look).Should(HavePrefix("False HeldByForeign"))
	w.east.remove(first.Name, client.GracePeriodSeconds(0))
	w.Expect(w.redisClient().Del(t.Context(), w.keyOf("after")).Err()).To(Succeed())
	w.east.holdsVersion("after", "2")
	w.east.rolledOut("deployment", "web")
	w.east.free("before")
	ledger.Verdict(t, w.ledger)
}

// Among leaders nobody waits behind a gate: the pods of both revisions are up, and one at a time bears the label.
func TestLeadersOfAWorkloadThatNamesAnotherLockNeverOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	oracle := w.east.watchLeaders()
	w.east.newLock("before", ttl(longTTL))
	w.east.newLock("after", ttl(longTTL))
	tpl := w.east.template("web", "leader", "sleep", "3600")
	wantsLock("before")(&tpl)
	w.east.deployment("web", 2, tpl, rolling)
	w.east.holds("before")
	w.east.roll("web", "2", wantsLock("after"))
	w.Eventually(func() string {
		var leaders corev1.PodList
		w.Expect(w.east.client.List(t.Context(), &leaders, client.InNamespace(w.ns), client.MatchingLabels{lockv1alpha1.LabelRole: lockv1alpha1.RoleLeader})).To(Succeed())
		w.Expect(len(leaders.Items)).To(BeNumerically("<", 2))
		return describe(w.east.lock("after"))
	}, within, 20*time.Millisecond).Should(HavePrefix("Held by " + w.east.id() + " started"))
	w.east.rolledOut("deployment", "web")
	w.east.free("before")
	ledger.Verdict(t, oracle)
}
