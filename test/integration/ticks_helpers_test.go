package integration

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
	"github.com/conch-dev/conch/test/ledger"
)

// scheduledFor is where the CronJob controller writes the minute of a Job.
const scheduledFor = "batch.kubernetes.io/cronjob-scheduled-timestamp"

// cron is one CronJob of a name in one cluster or both. Its controller makes nothing of it, for it is
// suspended; tests make its Jobs, as the controller would, for minutes of their own.
type cron struct {
	name, lock string
	base       time.Time
}

func newCron(name string) cron {
	return cron{name: name, lock: naming.Lock("CronJob", name), base: time.Now().UTC().Truncate(time.Minute).Add(-10 * time.Minute)}
}

func (c cron) at(minute int) time.Time { return c.base.Add(time.Duration(minute) * time.Minute) }
func (c cron) job(minute int) string   { return fmt.Sprintf("%s-%d", c.name, c.at(minute).Unix()/60) }

// cronJob creates a CronJob and its lock.
func (s *side) cronJob(c cron, policy batchv1.ConcurrencyPolicy, mods ...func(*batchv1.CronJobSpec)) *batchv1.CronJob {
	s.w.t.Helper()
	if s.lock(c.lock) == nil {
		s.newLock(c.lock)
	}
	cj := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: c.name},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", Suspend: ptr.To(true), ConcurrencyPolicy: policy, TimeZone: ptr.To("Etc/UTC"),
			SuccessfulJobsHistoryLimit: ptr.To[int32](100), FailedJobsHistoryLimit: ptr.To[int32](100),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{lockv1alpha1.LabelSingleton: "exclusive"}},
				Spec:       s.jobSpec(c.lock),
			},
		},
	}
	for _, mod := range mods {
		mod(&cj.Spec)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), cj)).To(Succeed())
	return cj
}

// cronNow reads the CronJob, whose UID its Jobs refer to.
func (s *side) cronNow(c cron) *batchv1.CronJob {
	s.w.t.Helper()
	var cj batchv1.CronJob
	s.w.Expect(s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: c.name}, &cj)).To(Succeed())
	return &cj
}

// tick makes the Job of a minute, as the CronJob controller does.
func (s *side) tick(c cron, minute int, mods ...func(*batchv1.JobSpec)) *batchv1.Job {
	s.w.t.Helper()
	cj := s.cronNow(c)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.w.ns, Name: c.job(minute), Labels: cj.Spec.JobTemplate.Labels,
			Annotations:     map[string]string{scheduledFor: c.at(minute).Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: *cj.Spec.JobTemplate.Spec.DeepCopy(),
	}
	if c.lock != naming.Lock("CronJob", c.name) {
		j.Annotations[lockv1alpha1.AnnotationLock] = c.lock
	}
	for _, mod := range mods {
		mod(&j.Spec)
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), j)).To(Succeed())
	return j
}

// outcome is what the status says about a tick, with its reason; empty if it says nothing.
func (s *side) outcome(c cron, minute int) string {
	t := s.recent(c, minute)
	if t == nil {
		return ""
	}
	return t.Outcome + " " + t.Reason
}

func (s *side) recent(c cron, minute int) *lockv1alpha1.Tick {
	l := s.lock(c.lock)
	if l == nil {
		return nil
	}
	for i := range l.Status.RecentTicks {
		if t := &l.Status.RecentTicks[i]; t.CronJob == c.name && t.ScheduledAt.UTC().Equal(c.at(minute)) {
			return t
		}
	}
	return nil
}

// comesTo waits until the status says what became of a tick here.
func (s *side) comesTo(c cron, minute int, want string) {
	s.w.t.Helper()
	s.w.Eventually(func() string { return s.outcome(c, minute) }, within, look).Should(HavePrefix(want), func() string {
		return fmt.Sprintf("%s %s: %s; %s; %+v", s.cluster.Name(), c.job(minute), s.jobReads(c.job(minute)), describe(s.lock(c.lock)), s.recent(c, minute))
	})
}

// between waits until a tick ended in one of the two clusters and was skipped in the other, and returns them
// in that order.
func (w *world) between(c cron, minute int, want string) (ran, skipped *side) {
	w.t.Helper()
	w.Eventually(func() bool {
		for _, pair := range [][2]*side{{w.east, w.west}, {w.west, w.east}} {
			if strings.HasPrefix(pair[0].outcome(c, minute), want) && strings.HasPrefix(pair[1].outcome(c, minute), "skipped") {
				ran, skipped = pair[0], pair[1]
				return true
			}
		}
		return false
	}, within, look).Should(BeTrue(), func() string {
		return fmt.Sprintf("%s: east %q %s, west %q %s", c.job(minute), w.east.outcome(c, minute), describe(w.east.lock(c.lock)),
			w.west.outcome(c, minute), describe(w.west.lock(c.lock)))
	})
	return ran, skipped
}

// tickStarts counts in how many Jobs each tick began to work, by the name of the Job.
func (w *world) tickStarts() map[string]int {
	entries, err := w.ledger.Entries()
	w.Expect(err).NotTo(HaveOccurred())
	tenures := map[string]map[string]bool{}
	for _, i := range ledger.Intervals(entries) {
		job := i.Pod[:strings.LastIndexByte(i.Pod, '-')]
		if tenures[job] == nil {
			tenures[job] = map[string]bool{}
		}
		tenures[job][i.Tenure+i.PodUID] = true
	}
	out := map[string]int{}
	for job, of := range tenures {
		out[job] = len(of)
	}
	return out
}

func deleting(p metav1.DeletionPropagation) client.DeleteOption { return client.PropagationPolicy(p) }

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func names(pods []corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}
