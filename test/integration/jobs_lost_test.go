package integration

import (
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/rig"
)

// onPod changes the template of a Job as it changes those of other workloads.
func onPod(mods ...func(*corev1.PodTemplateSpec)) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) {
		for _, mod := range mods {
			mod(&j.Template)
		}
	}
}

func parallel(n int32) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) { j.Parallelism = &n }
}

// jobWrites notes what a conch writes about Jobs and pods, in order.
func jobWrites(api *rig.APIProxy) func() []string {
	var mu sync.Mutex
	var seen []string
	api.Before(func(wr rig.Write) {
		mu.Lock()
		defer mu.Unlock()
		if wr.Resource == "jobs" || wr.Resource == "pods" {
			seen = append(seen, wr.Method+" "+wr.Resource)
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func TestAJobThatLostItsLockIsSuspendedThenStoppedAndRunsAgainLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api, via := w.east.through()
	writes := jobWrites(api)
	w.east.conch(1, via)
	w.east.newLock("work")
	w.east.job("work", "work", parallel(3), onPod(flags("-ignore-term"), grace(30)))
	first := w.east.jobRuns("work", "work", 3)
	held := w.east.holds("work")
	w.Expect(writes()).To(Equal([]string{"PATCH jobs"}))
	w.Expect(w.redisClient().Set(t.Context(), w.keyOf("work"), "somebody else", 8*time.Second).Err()).To(Succeed())

	w.Eventually(func() string { return w.east.jobReads("work") }, within, look).Should(Equal("suspended"))
	for _, pod := range first {
		w.east.gone(pod.Name)
	}
	w.Expect(w.redisClient().Get(t.Context(), w.keyOf("work")).Val()).To(Equal("somebody else"), "the pods got no more than fenceGrace")
	stop := writes()[1:]
	w.Expect(stop[0]).To(Equal("PATCH jobs"))
	w.Expect(stop[1:4]).To(Equal([]string{"DELETE pods", "DELETE pods", "DELETE pods"}))
	w.east.passesOn("work", held.Status.FencingToken)
	for _, pod := range w.east.jobRuns("work", "work", 3) {
		w.Expect(pod.Annotations).NotTo(HaveKeyWithValue(lockv1alpha1.AnnotationFencingToken, first[0].Annotations[lockv1alpha1.AnnotationFencingToken]))
	}
	w.Expect(w.east.jobNow("work").Status.Failed).To(BeZero(), "backoffLimit is not spent")
	ledger.Verdict(t, w.ledger)
}

func TestAJobWhoseKeyVanishedRunsOnWithAHigherToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("work")
	w.east.job("work", "work")
	pod := w.east.jobRuns("work", "work", 1)[0]
	before := w.east.holds("work")
	w.Expect(w.redisClient().FlushAll(t.Context()).Err()).To(Succeed())
	after := w.east.passesOn("work", before.Status.FencingToken)
	w.Eventually(func() string { return w.east.pod(pod.Name).Annotations[lockv1alpha1.AnnotationFencingToken] }, within, look).
		ShouldNot(Equal(pod.Annotations[lockv1alpha1.AnnotationFencingToken]))
	w.Expect(after.Status.Holder.UID).To(Equal(before.Status.Holder.UID))
	w.Expect(w.east.jobPods("work")).To(HaveLen(1))
	ledger.Verdict(t, w.ledger)
}

func TestTwoClustersRunOneJobAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	east, via := w.slowly()
	w.east.conch(1, via)
	w.west.conch(1)
	w.east.newLock("work")
	w.east.job("work", "work")
	w.east.jobRuns("work", "work", 1)
	w.west.newLock("work")
	w.west.job("work", "work")
	w.Eventually(func() string { return describe(w.west.lock("work")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))

	east.Set(proxy.Rule{Mode: proxy.Cut})
	w.west.jobRuns("work", "work", 1)
	w.Expect(w.east.jobReads("work")).To(Equal("suspended"))
	east.Heal()
	w.Eventually(func() string { return describe(w.east.lock("work")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	w.west.deleteJob("work", metav1.DeletePropagationBackground)
	w.east.jobRuns("work", "work", 1)
	w.Expect(w.east.jobNow("work").Status.Failed).To(BeZero())
	ledger.Verdict(t, w.ledger)
}

func TestATenureOfAJobIsEndedInGoodOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec   func(*lockv1alpha1.DistributedLockSpec)
		first  func(*batchv1.JobSpec)
		end    func(w *world)
		reason string
		again  bool
	}{
		"by an operator's release": {end: func(w *world) {
			w.east.annotate("work", lockv1alpha1.AnnotationRelease, w.east.jobNow("first").Annotations[lockv1alpha1.AnnotationFencingToken])
		}, reason: lockv1alpha1.ReasonReleaseRequested, again: true},
		"by maxHold": {spec: func(s *lockv1alpha1.DistributedLockSpec) { s.MaxHold = seconds(6) }, reason: lockv1alpha1.ReasonMaxHoldReached, again: true},
		"by somebody who suspends it": {end: func(w *world) {
			w.east.suspend("first", true)
		}, reason: lockv1alpha1.ReasonHolderGone, again: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.east.conch(1)
			spec := tc.spec
			if spec == nil {
				spec = func(*lockv1alpha1.DistributedLockSpec) {}
			}
			w.east.newLock("work", spec)
			w.east.job("work", "first")
			w.east.jobRuns("work", "first", 1)
			before := w.east.holds("work")
			if tc.end != nil {
				tc.end(w)
			}
			w.Eventually(func() string { return w.east.jobReads("first") }, within, look).Should(Equal("suspended"))
			w.east.passesOn("work", before.Status.FencingToken)
			l := w.east.lock("work")
			w.Expect(l.Status.History[len(l.Status.History)-1].Reason).To(Equal(tc.reason))
			w.Expect(w.east.jobNow("first").Status.Failed).To(BeZero())
			ledger.Verdict(t, w.ledger)
		})
	}
}

// suspend sets a Job's spec.suspend by hand.
func (s *side) suspend(name string, yes bool, mods ...func(*batchv1.Job)) {
	s.w.t.Helper()
	s.w.Eventually(func() error {
		j := s.jobNow(name)
		j.Spec.Suspend = ptr.To(yes)
		for _, mod := range mods {
			mod(j)
		}
		return s.client.Update(s.w.t.Context(), j)
	}, within, look).Should(Succeed())
}

func TestAJobThatDoesNotStartGivesTheLockToAnotherAndWaitsBehindIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("work", func(s *lockv1alpha1.DistributedLockSpec) { s.StartDeadline = seconds(5) })
	nowhere := onPod(func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"no-such": "node"} })
	w.east.job("work", "first", nowhere)
	w.Eventually(func() string { return w.east.jobReads("first") }, within, look).Should(Equal("resumed"))
	w.east.job("work", "second", runFor("2", 0))
	w.east.jobRuns("work", "second", 1)
	w.Expect(w.east.jobReads("first")).To(Equal("suspended"))
	w.Expect(w.east.lock("work").Status.History[0].Reason).To(Equal(lockv1alpha1.ReasonStartDeadlineExceeded))
	w.Eventually(func() string { return w.east.jobReads("second") }, within, look).Should(Equal("resumed Complete"))
	w.Expect(w.east.jobReads("first")).To(Equal("suspended"), "it stands back for a while")
	ledger.Verdict(t, w.ledger)
}

func TestADeletedLockStopsItsJobWhichStaysSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("work")
	w.east.job("work", "work")
	pod := w.east.jobRuns("work", "work", 1)[0]
	w.Expect(w.east.client.Delete(t.Context(), w.east.lock("work"))).To(Succeed())
	w.east.gone(pod.Name)
	w.Expect(w.east.jobReads("work")).To(Equal("suspended"))
	w.Eventually(func() int64 { return w.redisClient().Exists(t.Context(), w.keyOf("work")).Val() }, within, look).Should(BeZero())
	w.Eventually(func() map[string]int { return w.east.eventsOn("Job") }, within, look).Should(HaveKey("LockNotFound"))
	w.Consistently(func() string { return w.east.jobReads("work") }, 2*time.Second, look).Should(Equal("suspended"))
	ledger.Verdict(t, w.ledger)
}

// What is left after the loss of the lock's object, the Job's object and conch itself is the record on the pods.
func TestPodsOfAJobThatIsGoneAreFoundByTheirRecordAndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.east.conch(1)[0]
	w.east.newLock("work", ttl(longTTL))
	w.east.job("work", "work", parallel(2))
	pods := w.east.jobRuns("work", "work", 2)
	first.Kill()
	w.Expect(w.east.client.Delete(t.Context(), w.east.lock("work"))).To(Succeed())
	w.east.deleteJob("work", metav1.DeletePropagationOrphan)
	w.Eventually(func() *batchv1.Job { return w.east.jobNow("work") }, within, look).Should(BeNil())
	w.east.conch(1)
	for _, pod := range pods {
		w.east.gone(pod.Name)
	}
	w.Eventually(func() int64 { return w.redisClient().Exists(t.Context(), w.keyOf("work")).Val() }, within, look).Should(BeZero())
	ledger.Verdict(t, w.ledger)
}

// C111: a hand-made resume is undone, with an Event that says why.
func TestAJobThatIsResumedByHandIsSuspendedAgainUnlessAnOperatorGaveTheRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("work")
	w.east.job("work", "holder", runFor("12", 0))
	w.east.jobRuns("work", "holder", 1)
	idle := func(j *batchv1.JobSpec) { j.Template.Spec.Containers[0].Command = []string{"sleep", "3600"} }
	w.east.job("work", "other", idle)
	w.Eventually(func() *lockv1alpha1.Waiters { return w.east.lock("work").Status.Waiters }, within, look).ShouldNot(BeNil())
	w.east.suspend("other", false)
	w.Eventually(func() string { return w.east.jobReads("other") }, within, look).Should(Equal("suspended"))
	w.Eventually(func() map[string]int { return w.east.eventsOn("Job") }, within, look).Should(HaveKey("GateBypassed"))
	w.Eventually(func() []corev1.Pod { return w.east.jobPods("other") }, within, look).Should(BeEmpty())
	w.Expect(w.east.jobPods("holder")).To(HaveLen(1), "the holder is left alone")
	w.Eventually(func() string { return w.east.jobReads("holder") }, within, look).Should(Equal("resumed Complete"))
	w.east.jobRuns("work", "other", 1)
	ledger.Verdict(t, w.ledger)
}

func TestAJobThatAnOperatorResumedIsAdoptedOnceTheKeyIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redis.Kill()
	w.east.newLock("work")
	w.east.job("work", "work", onPod(flags("-unmanaged")))
	w.east.suspend("work", false, func(j *batchv1.Job) { j.Annotations[lockv1alpha1.AnnotationOverride] = "the shop is closed" })
	w.Eventually(func() []corev1.Pod { return w.east.jobPods("work") }, within, look).Should(HaveLen(1))
	w.Expect(w.redis.Restart(t.Context())).To(Succeed())
	w.east.conch(1)
	held := w.east.holds("work")
	w.Expect(held.Status.Holder.Kind).To(Equal("Job"))
	w.Eventually(func() map[string]string { return w.east.jobNow("work").Annotations }, within, look).
		Should(HaveKeyWithValue(lockv1alpha1.AnnotationHolderIdentity, held.Status.Holder.Identity))
	w.Eventually(func() map[string]int { return w.east.eventsOn("Job") }, within, look).Should(HaveKey("GateOverridden"))
	w.Expect(w.east.jobPods("work")).To(HaveLen(1))
	ledger.Verdict(t, w.ledger)
}

// C109: a Job that has a start time from an earlier run, as older API servers leave it.
func TestAJobThatRanBeforeIsResumedAlthoughItsStartTimeStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.newLock("work")
	w.east.job("work", "work", runFor("1", 0))
	w.Eventually(func() []batchv1.JobCondition { return w.east.jobNow("work").Status.Conditions }, within, look).ShouldNot(BeEmpty())
	j := w.east.jobNow("work")
	base := j.DeepCopy()
	j.Status.StartTime = ptr.To(metav1.Now())
	w.Expect(w.east.client.Status().Patch(t.Context(), j, client.MergeFrom(base))).To(Succeed())
	w.east.conch(1)
	w.Eventually(func() string { return w.east.jobReads("work") }, within, look).Should(Equal("resumed Complete"))
	ledger.Verdict(t, w.ledger)
}
