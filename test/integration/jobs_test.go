package integration

import (
	"fmt"
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
)

// job creates a suspended Job that wants a lock and whose pods note in the ledger when they work. All pods
// of one Job are one tenure.
func (s *side) job(lock, name string, mods ...func(*batchv1.JobSpec)) *batchv1.Job {
	s.w.t.Helper()
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.w.ns, Name: name,
			Labels:      map[string]string{lockv1alpha1.LabelSingleton: "exclusive"},
			Annotations: map[string]string{lockv1alpha1.AnnotationLock: lock},
		},
		Spec: s.jobSpec(lock),
	}
	for _, mod := range mods {
		mod(&j.Spec)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), j)).To(Succeed())
	return j
}

func (s *side) jobSpec(lock string) batchv1.JobSpec {
	t := s.template(lock, "exclusive", s.w.worker, "exclusive", "-ledger", s.w.ledger.Path())
	delete(t.Labels, lockv1alpha1.LabelSingleton) // conch marks the pods when it resumes the Job
	t.Annotations = nil
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "CONCH_TENURE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.ControllerUidLabel)},
	}})
	return batchv1.JobSpec{Template: t, Suspend: ptr.To(true), PodReplacementPolicy: ptr.To(batchv1.Failed), BackoffLimit: ptr.To[int32](0)}
}

// runFor makes the process of a Job's pods end by itself.
func runFor(seconds string, exit int) func(*batchv1.JobSpec) {
	return func(j *batchv1.JobSpec) {
		c := &j.Template.Spec.Containers[0]
		worker := c.Command
		c.Command = append([]string{"timeout", "--preserve-status", seconds}, worker...)
		if exit != 0 {
			c.Command = append([]string{"sh", "-c", fmt.Sprintf(`"$@"; exit %d`, exit), "sh"}, c.Command...)
		}
	}
}

func (s *side) jobNow(name string) *batchv1.Job {
	var j batchv1.Job
	if err := s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &j); err != nil {
		return nil
	}
	return &j
}

// jobReads sums a Job up: suspended or not, and the conditions that are true.
func (s *side) jobReads(name string) string {
	j := s.jobNow(name)
	if j == nil {
		return "gone"
	}
	out := "resumed"
	if ptr.Deref(j.Spec.Suspend, false) {
		out = "suspended"
	}
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			out += " " + string(c.Type)
		}
	}
	return out
}

// jobPods are the pods of a Job that run, oldest knowledge first.
func (s *side) jobPods(name string) []corev1.Pod {
	var list corev1.PodList
	s.w.Expect(s.client.List(s.w.t.Context(), &list, client.InNamespace(s.w.ns), client.MatchingLabels{batchv1.JobNameLabel: name})).To(Succeed())
	var out []corev1.Pod
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

// jobRuns waits until n pods of a Job run and the lock names it as its holder.
func (s *side) jobRuns(lock, name string, n int) []corev1.Pod {
	s.w.t.Helper()
	s.w.Eventually(func() []corev1.Pod { return s.jobPods(name) }, within, look).Should(HaveLen(n), func() string {
		return s.jobReads(name) + "; " + describe(s.lock(lock))
	})
	s.w.Eventually(func() string {
		l := s.lock(lock)
		if l.Status.Holder == nil || l.Status.StartedAt == nil {
			return describe(l)
		}
		return l.Status.Holder.Kind + "/" + l.Status.Holder.Name
	}, within, look).Should(Equal("Job/" + name))
	return s.jobPods(name)
}

// free waits until nobody here holds the lock, and nobody elsewhere.
func (s *side) free(lock string) {
	s.w.t.Helper()
	s.w.Eventually(func() string { return describe(s.lock(lock)) }, within, look).Should(HavePrefix("Idle without holder"))
	s.w.Expect(s.w.redisClient().Exists(s.w.t.Context(), s.w.keyOf(lock)).Val()).To(BeZero())
}

func TestAJobWaitsSuspendedRunsWithItsTokenAndGivesTheLockBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(2)
	w.east.newLock("nightly")
	w.east.job("nightly", "report", runFor("1.5", 0))
	w.east.job("nightly", "cleanup", runFor("1", 0))
	first := w.east.jobRuns("nightly", "report", 1)[0]
	held := w.east.holds("nightly")
	w.Expect(w.east.jobReads("cleanup")).To(Equal("suspended"))
	w.Expect(held.Status.Waiters.Names).To(ConsistOf("cleanup"))
	token := fmt.Sprint(held.Status.FencingToken)
	w.Expect(first.Annotations).To(HaveKeyWithValue(lockv1alpha1.AnnotationFencingToken, token))
	w.Expect(first.Labels).To(HaveKeyWithValue(lockv1alpha1.LabelSingleton, "exclusive"))
	w.Expect(w.east.jobNow("report").Annotations).To(HaveKeyWithValue(lockv1alpha1.AnnotationHolderIdentity, held.Status.Holder.Identity))

	w.Eventually(func() string { return w.east.jobReads("cleanup") }, within, look).Should(Equal("resumed Complete"))
	w.Expect(w.east.jobReads("report")).To(Equal("resumed Complete"))
	w.east.free("nightly")
	for _, tenure := range w.east.lock("nightly").Status.History {
		w.Expect(tenure.Reason).To(Equal(lockv1alpha1.ReasonHolderFinished))
	}
	w.Expect(w.starts("nightly")).To(Equal(2))
	ledger.Verdict(t, w.ledger)
}

// C95: not only success gives the lock back.
func TestAJobGivesTheLockBackHoweverItEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mods []func(*batchv1.JobSpec)
		end  func(s *side, pods []corev1.Pod)
		pods int
		want string
	}{
		"by failing for good": {pods: 1, mods: []func(*batchv1.JobSpec){runFor("1", 3)}, want: "resumed Failed"},
		"after it was tried again": {
			pods: 1, want: "resumed Failed",
			mods: []func(*batchv1.JobSpec){runFor("0.5", 3), func(j *batchv1.JobSpec) { j.BackoffLimit = ptr.To[int32](1) }},
		},
		"by its deadline, which counts from when it was resumed": {
			pods: 1, want: "resumed Failed",
			mods: []func(*batchv1.JobSpec){func(j *batchv1.JobSpec) { j.ActiveDeadlineSeconds = ptr.To[int64](3) }},
		},
		"and is cleaned up at once": {
			pods: 1, want: "gone", mods: []func(*batchv1.JobSpec){runFor("1.5", 0), func(j *batchv1.JobSpec) { j.TTLSecondsAfterFinished = ptr.To[int32](0) }},
		},
		"with three pods at a time": {
			pods: 3, want: "resumed Complete",
			mods: []func(*batchv1.JobSpec){runFor("3", 0), func(j *batchv1.JobSpec) { j.Parallelism, j.Completions = ptr.To[int32](3), ptr.To[int32](3) }},
		},
		"when all its indexes are done": {
			pods: 2, want: "resumed Complete",
			mods: []func(*batchv1.JobSpec){runFor("3", 0), func(j *batchv1.JobSpec) {
				j.Parallelism, j.Completions, j.CompletionMode = ptr.To[int32](2), ptr.To[int32](2), ptr.To(batchv1.IndexedCompletion)
			}},
		},
		"by being deleted with its pods": {pods: 1, want: "gone", end: func(s *side, _ []corev1.Pod) {
			s.deleteJob("work", metav1.DeletePropagationBackground)
		}},
		"by being deleted in the foreground": {pods: 1, want: "gone", end: func(s *side, _ []corev1.Pod) {
			s.deleteJob("work", metav1.DeletePropagationForeground)
		}},
		"by being deleted without its pods, which are stopped": {pods: 2, want: "gone", mods: []func(*batchv1.JobSpec){
			func(j *batchv1.JobSpec) { j.Parallelism = ptr.To[int32](2) },
		}, end: func(s *side, pods []corev1.Pod) {
			s.deleteJob("work", metav1.DeletePropagationOrphan)
			for _, p := range pods {
				s.gone(p.Name)
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.east.job("work", "work", tc.mods...)
			w.east.job("work", "next", runFor("0.5", 0))
			w.Consistently(func() string { return w.east.jobReads("work") }, 4*time.Second, look).Should(Equal("suspended"))
			w.east.conch(1)
			w.east.newLock("work")
			pods := w.east.jobRuns("work", "work", tc.pods)
			if tc.end != nil {
				tc.end(w.east, pods)
			}
			w.Eventually(func() string { return w.east.jobReads("work") }, within, look).Should(Equal(tc.want))
			w.Eventually(func() string { return w.east.jobReads("next") }, within, look).Should(Equal("resumed Complete"))
			w.east.free("work")
			ledger.Verdict(t, w.ledger)
		})
	}
}

func (s *side) deleteJob(name string, how metav1.DeletionPropagation) {
	s.w.t.Helper()
	s.w.Expect(s.client.Delete(s.w.t.Context(), s.jobNow(name), client.PropagationPolicy(how))).To(Succeed())
}
