package integration

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conch-dev/conch/test/ledger"
)

// pairOf starts a conch and makes the CronJob in both clusters.
func (w *world) pairOf(name string, policy batchv1.ConcurrencyPolicy, mods ...func(*batchv1.CronJobSpec)) cron {
	w.t.Helper()
	c := newCron(name)
	w.pair(c, policy, mods...)
	return c
}

func (w *world) pair(c cron, policy batchv1.ConcurrencyPolicy, mods ...func(*batchv1.CronJobSpec)) {
	w.t.Helper()
	for _, s := range []*side{w.east, w.west} {
		s.conch(1)
		s.cronJob(c, policy, mods...)
	}
}

// Both clusters have the CronJob and make its Jobs; each tick runs in one of them, and the other deletes
// its Job and says so (C115).
func TestATickRunsInOneOfTwoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	for minute := range 3 {
		w.east.tick(c, minute, runFor("1", 0))
		w.west.tick(c, minute, runFor("1", 0))
		ran, skipped := w.between(c, minute, "succeeded")
		w.Expect(ran.jobReads(c.job(minute))).To(Equal("resumed Complete"))
		w.Eventually(func() string { return skipped.jobReads(c.job(minute)) }, within, look).Should(Equal("gone"))
		w.Expect(skipped.recent(c, minute).Cluster).To(Equal(ran.id()))
		w.Expect(ran.recent(c, minute).FencingToken).To(BeNumerically(">", 0))
		w.Eventually(func() int { return skipped.eventsOn("CronJob")["TickRunsElsewhere"] }, within, look).Should(BeNumerically(">=", 1))
		w.Expect(w.tickStarts()).To(HaveKeyWithValue(c.job(minute), 1))
	}
	ledger.Verdict(t, w.ledger)
}

// A tick that is due while the one before still runs in the other cluster waits for it under Forbid, and
// is skipped once its startingDeadlineSeconds are over. C105: the lock excludes, not the CronJob controller.
func TestUnderForbidATickWaitsForTheOneBeforeInTheOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	w.east.tick(c, 0, runFor("8", 1))
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.west.tick(c, 1, runFor("1", 0))
	w.Consistently(func() string { return w.west.jobReads(c.job(1)) }, 4*time.Second, look).Should(Equal("suspended"))
	w.east.comesTo(c, 0, "failed Ended")
	w.west.comesTo(c, 1, "succeeded Ended")
	ledger.Verdict(t, w.ledger)
}

func TestUnderReplaceANewerTickEndsTheOneBeforeInEitherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ReplaceConcurrent)
	w.east.tick(c, 0)
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.west.tick(c, 1)
	w.west.jobRuns(c.lock, c.job(1), 1)
	w.east.comesTo(c, 0, "failed LostAfterStart")
	w.west.tick(c, 2, runFor("1", 0))
	w.west.comesTo(c, 1, "failed LostAfterStart")
	w.west.comesTo(c, 2, "succeeded Ended")
	w.Eventually(func() string { return w.east.jobReads(c.job(0)) + w.west.jobReads(c.job(1)) }, within, look).Should(Equal("gonegone"))
	// One that is older than a tick that was started is not run any more.
	w.east.tick(c, 1)
	w.east.comesTo(c, 1, "skipped")
	ledger.Verdict(t, w.ledger)
}

// Under Allow several ticks run at once, each in one cluster. Nobody has the plain lock.
func TestUnderAllowTicksRunAtTheSameTimeEachInOneCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.AllowConcurrent)
	const ticks = 4
	for minute := range ticks {
		w.east.tick(c, minute, runFor("6", 0))
		w.west.tick(c, minute, runFor("6", 0))
	}
	w.Eventually(func() int { return len(w.tickStarts()) }, within, look).Should(Equal(ticks))
	w.Expect(describe(w.east.lock(c.lock))).To(HavePrefix("Idle"))
	for minute := range ticks {
		ran, _ := w.between(c, minute, "succeeded")
		job := ran.jobNow(c.job(minute))
		w.Expect(job.Annotations["conch.dev/key"]).To(ContainSubstring(":tick:"))
		w.Expect(w.tickStarts()).To(HaveKeyWithValue(c.job(minute), 1))
	}
}

// A tick that loses its lock after it was started is stopped, recorded as failed and deleted. It does not
// run again, and the next one does.
func TestATickThatLosesItsLockIsNotRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	w.east.tick(c, 0)
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.redis.Do(t, "SET", w.keyOf(c.lock), "somebody/else#9999999999999", "PX", "4000")
	w.east.comesTo(c, 0, "failed LostAfterStart")
	w.Eventually(func() string { return w.east.jobReads(c.job(0)) }, within, look).Should(Equal("gone"))
	w.Eventually(func() int { return w.east.eventsOn("CronJob")["TickLost"] }, within, look).Should(BeNumerically(">=", 1))
	w.west.tick(c, 0)
	w.west.comesTo(c, 0, "skipped RunsElsewhere")
	w.west.tick(c, 1, runFor("1", 0))
	w.west.comesTo(c, 1, "succeeded")
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 1, c.job(1): 1}))
	ledger.Verdict(t, w.ledger)
}

func TestTicksThatMayNotRunAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	w.east.conch(1)
	w.east.cronJob(c, batchv1.ForbidConcurrent)
	const day = 24 * 60
	w.east.tick(c, -day) // due a day and ten minutes ago
	w.east.comesTo(c, -day, "skipped TooOld")
	w.east.tick(c, 2, runFor("1", 0))
	w.east.comesTo(c, 2, "succeeded")
	w.east.tick(c, 1)
	w.east.comesTo(c, 1, "skipped Superseded")

	late := newCron("late")
	w.east.cronJob(late, batchv1.ForbidConcurrent, func(s *batchv1.CronJobSpec) { s.StartingDeadlineSeconds = ptr.To[int64](60) })
	w.east.tick(late, 0)
	w.east.comesTo(late, 0, "skipped StartingDeadlineExceeded")
	for _, job := range []string{c.job(-day), c.job(1), late.job(0)} {
		w.Eventually(func() string { return w.east.jobReads(job) }, within, look).Should(Equal("gone"))
	}
	w.Eventually(func() int { return w.east.eventsOn("CronJob")["TickSkipped"] }, within, look).Should(BeNumerically(">=", 3))
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(2): 1}))
}

// A Job made by hand from a CronJob is an exclusive Job of the same lock, and no tick.
func TestAJobMadeByHandWaitsForTheTickThatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	w.east.tick(c, 0, runFor("8", 0))
	w.east.jobRuns(c.lock, c.job(0), 1)
	out, err := w.west.cluster.Kubectl(t.Context(), "-n", w.ns, "create", "job", "by-hand", "--from=cronjob/"+c.name)
	w.Expect(err).NotTo(HaveOccurred(), out)
	w.Consistently(func() string { return w.west.jobReads("by-hand") }, 3*time.Second, look).Should(Equal("suspended"))
	w.west.jobRuns(c.lock, "by-hand", 1)
	w.Expect(w.west.lock(c.lock).Status.RecentTicks).To(BeEmpty())
	ledger.Verdict(t, w.ledger)
}

// Clusters that are in no set share nothing: each runs each tick.
func TestWithoutAClusterSetEachClusterRunsEachTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.set, w.west.set = "", ""
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	for _, s := range []*side{w.east, w.west} {
		s.tick(c, 0, runFor("2", 0))
	}
	for _, s := range []*side{w.east, w.west} {
		s.comesTo(c, 0, "succeeded")
	}
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 2}))
}

// A Job that is deleted as soon as it is complete has succeeded all the same.
func TestATickWhoseJobIsDeletedAtItsEndHasSucceeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	w.east.conch(2)
	w.east.cronJob(c, batchv1.ForbidConcurrent)
	w.east.tick(c, 0, runFor("1", 0), func(j *batchv1.JobSpec) { j.TTLSecondsAfterFinished = ptr.To[int32](0) })
	w.east.comesTo(c, 0, "succeeded")
	w.east.tick(c, 1)
	w.east.jobRuns(c.lock, c.job(1), 1)
	policy := metav1.DeletePropagationBackground
	w.Expect(w.east.client.Delete(t.Context(), w.east.jobNow(c.job(1)), deleting(policy))).To(Succeed())
	w.east.comesTo(c, 1, "failed JobDeleted")
	ledger.Verdict(t, w.ledger)
}

// One minute of a schedule that the CronJob controllers of both clusters follow themselves.
func TestARealMinuteRunsInOneOfTwoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("minutely")
	for _, s := range []*side{w.east, w.west} {
		s.conch(1)
		s.cronJob(c, batchv1.ForbidConcurrent, func(cj *batchv1.CronJobSpec) {
			cj.Suspend = ptr.To(false)
			runFor("1", 0)(&cj.JobTemplate.Spec)
		})
	}
	ended := func() []string {
		var out []string
		for _, s := range []*side{w.east, w.west} {
			for _, tick := range s.lock(c.lock).Status.RecentTicks {
				out = append(out, tick.ScheduledAt.UTC().Format("15:04 ")+tick.Outcome)
			}
		}
		return out
	}
	w.Eventually(func() bool {
		for _, a := range ended() {
			minute, outcome, _ := strings.Cut(a, " ")
			if outcome == "succeeded" && contains(ended(), minute+" skipped") {
				return true
			}
		}
		return false
	}, 100*time.Second, look).Should(BeTrue(), func() string { return strings.Join(ended(), ", ") })
	for job, n := range w.tickStarts() {
		w.Expect(n).To(Equal(1), job)
	}
	ledger.Verdict(t, w.ledger)
}
