package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// A program outside Kubernetes that takes the same key with SET NX excludes the pods, and is excluded
// by them.
func TestARawKeyIsSharedWithAProgramThatKnowsNothingOfConch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1, func(o *rig.Options) {
		o.Extra = "rawKeys: [{namespace: " + w.ns + ", pattern: \"billing:*\"}]\n"
	})
	const key = "billing:nightly"
	outside := w.redisClient()
	taken, err := outside.SetNX(t.Context(), key, "the old cron host", 4*time.Second).Result()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(taken).To(BeTrue())

	w.east.newLock("work", func(s *lockv1alpha1.DistributedLockSpec) { s.RawKey = key })
	w.east.exclusive("work", 1)
	w.Eventually(func() string { return describe(w.east.lock("work")) }, within, look).Should(ContainSubstring("Held=False(HeldByForeign)"))
	w.Expect(w.east.pods("work")[0].Spec.SchedulingGates).NotTo(BeEmpty())

	w.east.runs("work", 0)
	held := w.east.holds("work")
	w.Expect(outside.Get(t.Context(), key).Val()).To(Equal(held.Status.Token))
	w.Expect(held.Status.NotBefore).NotTo(BeNil(), "a foreign holder gets its time to stop")
	taken, err = outside.SetNX(t.Context(), key, "the old cron host", 4*time.Second).Result()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(taken).To(BeFalse())
	ledger.Verdict(t, w.ledger)
}
