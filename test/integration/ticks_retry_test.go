package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

func retryElsewhere(s *lockv1alpha1.DistributedLockSpec) { s.RetryElsewhere = ptr.To(true) }

// retryingPair is a pair whose lost ticks may run in the other cluster.
func (w *world) retryingPair(c cron, policy batchv1.ConcurrencyPolicy) {
	w.t.Helper()
	for _, s := range []*side{w.east, w.west} {
		s.newLock(c.lock, retryElsewhere)
	}
	w.pair(c, policy)
}

// dies ends a whole cluster: its conch and all that runs on its nodes.
func (s *side) dies() {
	s.w.t.Helper()
	for _, c := range s.conchs {
		c.Kill()
	}
	for _, node := range s.agent.Nodes() {
		s.w.Expect(s.agent.PowerOff(s.w.t.Context(), node)).To(Succeed())
	}
}

// A tick waits in the second cluster while the first one runs it. When that dies it runs in the second, and the
// first finds when it is back that its run was lost.
func TestATickWhoseClusterDiesRunsInTheOtherWithRetryElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	w.retryingPair(c, batchv1.ForbidConcurrent)
	w.east.tick(c, 0)
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.west.tick(c, 0, runFor("1", 0))
	w.Consistently(func() string { return w.west.jobReads(c.job(0)) }, 3*time.Second, look).Should(Equal("suspended"))
	w.east.dies()
	w.west.comesTo(c, 0, "succeeded Ended")
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 2}))
	w.Expect(w.west.recent(c, 0).FencingToken).To(BeNumerically(">", w.east.recent(c, 0).FencingToken))

	w.east.conch(1)
	w.Eventually(func() string { return w.east.jobReads(c.job(0)) }, within, look).Should(HavePrefix("suspended"))
	for _, node := range w.east.agent.Nodes() {
		w.east.agent.PowerOn(node)
	}
	w.east.comesTo(c, 0, "failed")
	w.east.tick(c, 1, runFor("1", 0))
	w.east.comesTo(c, 1, "succeeded")
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 2, c.job(1): 1}))
	ledger.Verdict(t, w.ledger)
}

func TestATickWhoseClusterDiesIsNotRunAgainByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	w.east.tick(c, 0)
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.east.dies()
	w.Eventually(func() int64 { return w.redisClient().Exists(t.Context(), w.keyOf(c.lock)).Val() }, within, look).Should(BeZero())
	w.west.tick(c, 0, runFor("1", 0))
	w.west.comesTo(c, 0, "skipped RunsElsewhere")
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 1}))
	ledger.Verdict(t, w.ledger)
}

// Nobody died: the run lost its lock to somebody else for a while, or to an operator's order; it was stopped, and is run by the other cluster.
func TestATickThatLosesItsLockRunsInTheOtherClusterWithRetryElsewhere(t *testing.T) {
	t.Parallel()
	own := newCron("report").lock
	stolen := func(w *world, c cron) {
		w.redis.Do(w.t, "SET", w.keyOf(c.lock), "somebody/else#9999999999999", "PX", "4000")
	}
	released := func(w *world, c cron) {
		w.east.annotate(c.lock, lockv1alpha1.AnnotationRelease, fmt.Sprint(w.east.lock(c.lock).Status.FencingToken))
	}
	for name, k := range map[string]struct {
		policy batchv1.ConcurrencyPolicy
		lock   string
		lose   func(*world, cron)
	}{
		"stolen under Forbid":                        {batchv1.ForbidConcurrent, own, stolen},
		"stolen under Replace":                       {batchv1.ReplaceConcurrent, own, stolen},
		"stolen from a CronJob that shares its lock": {batchv1.ForbidConcurrent, "nightly", stolen},
		"released by an operator":                    {batchv1.ForbidConcurrent, own, released},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := newCron("report")
			c.lock = k.lock
			w.retryingPair(c, k.policy)
			w.east.tick(c, 0)
			w.east.jobRuns(c.lock, c.job(0), 1)
			w.west.tick(c, 0, runFor("1", 0))
			k.lose(w, c)
			w.east.comesTo(c, 0, "failed LostAfterStart")
			w.west.comesTo(c, 0, "succeeded Ended")
			w.Eventually(func() string { return w.east.jobReads(c.job(0)) }, within, look).Should(Equal("gone"))
			w.west.tick(c, 1, runFor("1", 0))
			w.west.comesTo(c, 1, "succeeded")
			w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 2, c.job(1): 1}))
			ledger.Verdict(t, w.ledger)
		})
	}
}

// A run that came to an end of its own, or of its user's will, is over everywhere.
func TestATickThatEndedIsNotRunAgainWithRetryElsewhere(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		mod  func(*batchv1.JobSpec)
		do   func(w *world, c cron)
		want string
	}{
		"it succeeds": {runFor("3", 0), func(*world, cron) {}, "succeeded Ended"},
		"it fails":    {runFor("3", 1), func(*world, cron) {}, "failed Ended"},
		"its Job is deleted": {func(*batchv1.JobSpec) {}, func(w *world, c cron) {
			w.east.deleteJob(c.job(0), metav1.DeletePropagationBackground)
		}, "failed JobDeleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := newCron("report")
			w.retryingPair(c, batchv1.ForbidConcurrent)
			w.east.tick(c, 0, ends.mod)
			w.east.jobRuns(c.lock, c.job(0), 1)
			w.west.tick(c, 0, runFor("1", 0))
			ends.do(w, c)
			w.east.comesTo(c, 0, ends.want)
			w.west.comesTo(c, 0, "skipped RunsElsewhere")
			key := w.keyOf(c.lock) + ":tick:" + strings.TrimPrefix(c.job(0), c.name+"-")
			w.Expect(w.redisClient().Get(t.Context(), key).Val()).To(HaveSuffix("#" + strings.Fields(ends.want)[0]))
			w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 1}))
			ledger.Verdict(t, w.ledger)
		})
	}
}

// What the spec says counts at once, also for a tick that is waited for.
func TestATickThatWaitsFollowsRetryElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	w.retryingPair(c, batchv1.ForbidConcurrent)
	w.east.tick(c, 0)
	w.east.jobRuns(c.lock, c.job(0), 1)
	w.west.tick(c, 0)
	w.Consistently(func() string { return w.west.jobReads(c.job(0)) }, time.Second, look).Should(Equal("suspended"))
	w.west.change(c.lock, func(s *lockv1alpha1.DistributedLockSpec) { s.RetryElsewhere = ptr.To(false) })
	w.west.comesTo(c, 0, "skipped RunsElsewhere")
	w.Expect(w.east.jobReads(c.job(0))).To(Equal("resumed"))
	ledger.Verdict(t, w.ledger)
}
