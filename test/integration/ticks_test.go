package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/conch-dev/conch/test/ledger"
)

// Both clusters have the CronJob and make its Jobs; each tick runs in one of them, and the other deletes
// its Job and says so.
func TestATickRunsInOneOfTwoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	for _, s := range []*side{w.east, w.west} {
		s.conch(1)
		s.cronJob(c, batchv1.ForbidConcurrent)
	}
	for minute := range 3 {
		w.east.tick(c, minute, runFor("1", 0))
		w.west.tick(c, minute, runFor("1", 0))
		ran, skipped := w.between(c, minute, "succeeded")
		w.Expect(ran.jobReads(c.job(minute))).To(Equal("resumed Complete"))
		w.Eventually(func() string { return skipped.jobReads(c.job(minute)) }, within, look).Should(Equal("gone"))
		w.Expect(skipped.recent(c, minute).Cluster).To(Equal(ran.id()))
		w.Eventually(func() int { return skipped.eventsOn("CronJob")["TickRunsElsewhere"] }, within, look).Should(BeNumerically(">=", 1))
		w.Expect(w.tickStarts()).To(HaveKeyWithValue(c.job(minute), 1))
	}
	ledger.Verdict(t, w.ledger)
}
