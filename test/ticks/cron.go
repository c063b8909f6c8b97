package main

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/naming"
)

// scheduledFor is where the CronJob controller writes the minute of a Job.
const scheduledFor = "batch.kubernetes.io/cronjob-scheduled-timestamp"

// kept is how many ended Jobs a CronJob keeps: at a tick every few seconds rather more than usual.
const kept = 20

// cron is the CronJob that both clusters have. Its own controller makes nothing of it, for it is suspended; its Jobs are made here, as
// that controller would, for one minute after the other, only faster.
type cron struct {
	name, lock string
	base       time.Time
	ticks      int
}

func newCron(name string, ticks int) cron {
	base := time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(ticks) * time.Minute)
	return cron{name: name, lock: naming.Lock("CronJob", name), base: base, ticks: ticks}
}

func (c cron) at(minute int) time.Time { return c.base.Add(time.Duration(minute) * time.Minute) }
func (c cron) job(minute int) string   { return fmt.Sprintf("%s-%d", c.name, c.at(minute).Unix()/60) }

// jobs are the names of the Jobs in order, the same in both clusters.
func (c cron) jobs() []string {
	var all []string
	for minute := range c.ticks {
		all = append(all, c.job(minute))
	}
	return all
}

func (s *site) lockObject() *lockv1alpha1.DistributedLock {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.w.cron.lock}}
	l.Spec.TTL = &metav1.Duration{Duration: s.w.ttl}
	return l
}

func (s *site) cronJob() *batchv1.CronJob {
	c := s.w.cron
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", TimeZone: ptr.To("Etc/UTC"), Suspend: ptr.To(true), ConcurrencyPolicy: batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: ptr.To[int32](kept), FailedJobsHistoryLimit: ptr.To[int32](kept),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonExclusive}},
				Spec: batchv1.JobSpec{
					Suspend: ptr.To(true), PodReplacementPolicy: ptr.To(batchv1.Failed), BackoffLimit: ptr.To[int32](0), Template: s.template(),
				},
			},
		},
	}
}

// job is the Job of a minute. Its process works for as long as it is told to and ends with an exit code.
func (s *site) job(cj *batchv1.CronJob, minute int, r runPlan) *batchv1.Job {
	c := s.w.cron
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: c.job(minute), Labels: cj.Spec.JobTemplate.Labels,
			Annotations:     map[string]string{scheduledFor: c.at(minute).Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: *cj.Spec.JobTemplate.Spec.DeepCopy(),
	}
	worker := &j.Spec.Template.Spec.Containers[0]
	worker.Command = append(worker.Command, "-run-for", r.takes.String(), "-exit-code", fmt.Sprint(r.exit))
	return j
}

func (s *site) template() corev1.PodTemplateSpec {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](2),
		Containers: []corev1.Container{{
			Name: "worker", Image: "worker", Command: []string{s.w.worker, "exclusive", "-ledger", s.w.ledger.Path()},
			Env: []corev1.EnvVar{
				{Name: "CONCH_KEY", Value: s.w.cron.lock}, {Name: "CONCH_CLUSTER", Value: s.name},
				field("CONCH_FENCING_TOKEN", fmt.Sprintf("metadata.annotations['%s']", lockv1alpha1.AnnotationFencingToken)),
				field("POD_UID", "metadata.uid"), field("POD_NAME", "metadata.name"),
				field("CONCH_TENURE", fmt.Sprintf("metadata.labels['%s']", batchv1.ControllerUidLabel)),
			},
		}},
	}}
}
