package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// The spec of a lock may change while its candidates wait. Whoever gets it then has it under the new
// terms, and starts (C89).
func TestATTLThatChangesWhileOthersHoldCountsForTheNextHolder(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]int{"longer": 120, "shorter": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.east.conch(1)
			w.west.conch(1)
			w.east.newLock("work", ttl(15))
			w.east.exclusive("work", 1)
			w.east.runs("work", 0)
			w.west.newLock("work", ttl(15))
			w.west.exclusive("work", 1)
			w.Eventually(func() string { return describe(w.west.lock("work")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))

			w.west.change("work", ttl(next))
			w.Eventually(func() time.Duration { return w.west.lock("work").Status.Effective.TTL.Duration }, within, look).
				Should(Equal(time.Duration(next) * time.Second))
			_, err := w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "delete", "deployment", "work", "--wait=false")
			w.Expect(err).NotTo(HaveOccurred())
			w.west.holds("work")
			w.west.runs("work", 0)
			key, c := w.redisKey(w.west, "work"), w.redisClient()
			w.Eventually(func() time.Duration { return c.PTTL(t.Context(), key).Val() }, within, look).
				Should(BeNumerically("~", time.Duration(next)*time.Second, time.Duration(next)*time.Second/2))
			ledger.Verdict(t, w.ledger)
		})
	}
}

// A mark that is misspelt is told to whoever wrote it, and the pod is left alone.
func TestAPodWithAnUnknownMarkIsLeftAloneAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("work")
	p := &corev1.Pod{}
	misspelt := w.east.template("work", "Leader", "sleep", "3600")
	p.ObjectMeta, p.Spec = misspelt.ObjectMeta, misspelt.Spec
	p.Namespace, p.Name = w.ns, "work"
	// It came before the policies, which refuse it otherwise.
	p.Annotations[lockv1alpha1.AnnotationOverride] = "a test"
	w.Expect(w.east.client.Create(t.Context(), p)).To(Succeed())
	w.Eventually(func() (string, error) {
		return w.east.cluster.Kubectl(t.Context(), "-n", w.ns, "get", "events", "-o", "jsonpath={.items[*].reason} {.items[*].message}")
	}, within, look).Should(And(ContainSubstring("UnknownMark"), ContainSubstring("must be leader, exclusive or active-passive")))
	for _, p := range w.east.pods("work") {
		w.Expect(p.DeletionTimestamp).To(BeNil())
	}
}
