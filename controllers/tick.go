package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/controllers/naming"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
)

// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get;list;watch

// scheduledFor is where the CronJob controller writes which minute a Job is for. One made by hand from a
// CronJob has no such annotation, and is a Job like any other.
const scheduledFor = "batch.kubernetes.io/cronjob-scheduled-timestamp"

// tickNonce ends the owner of a tick. It is the same for every attempt: whoever asks next for a Job finds
// what was claimed or started for it before, and goes on.
const tickNonce = "tick"

// tickRun is one scheduled run in one pass: its Job, and what is decided about it.
type tickRun struct {
	uid  string
	job  *batchv1.Job     // nil where it is gone
	cron *batchv1.CronJob // nil where it is gone
	// cronName and at say which run of which schedule it is.
	cronName string
	at       time.Time
	key      lock.Key
	snap     plan.TickSnapshot
	dec      plan.TickDecision
	// done is true once the effect of the decision has been ordered, so that it may be noted.
	done bool
}

// tickOf reads which minute a Job is for, and of which CronJob.
func tickOf(job *batchv1.Job) (time.Time, *metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != "CronJob" {
		return time.Time{}, nil, false
	}
	at, err := time.Parse(time.RFC3339, job.Annotations[scheduledFor])
	return at.UTC().Truncate(time.Minute), owner, err == nil && at.Unix() >= 60
}

// readTicks finds the scheduled runs among the candidates, and those that the status still has open.
func (p *pass) readTicks(ctx context.Context) error {
	for uid, n := range p.notes {
		if n.note.Outcome.Final() || p.indexOf(uid) >= 0 {
			continue
		}
		if err := p.findJob(ctx, n.job, types.UID(uid)); err != nil {
			return err
		}
	}
	for i := range p.candidates {
		c := p.candidates[i]
		run, err := p.runOf(ctx, c)
		if err != nil {
			return err
		}
		if run != nil {
			p.ticks = append(p.ticks, run)
		}
	}
	return nil
}

// runOf makes a run of a candidate that is one.
func (p *pass) runOf(ctx context.Context, c plan.Candidate) (*tickRun, error) {
	if c.Kind != plan.KindJob {
		return nil, nil
	}
	noted := p.notes[c.UID]
	run := &tickRun{uid: c.UID, job: p.jobs[c.UID], at: noted.at, cronName: noted.cron}
	run.snap.Job, run.snap.Note, run.snap.Policy = c, noted.note, plan.Forbid
	if run.job != nil {
		at, owner, ok := tickOf(run.job)
		if !ok || noted.job == "" && c.Body.Terminal && p.trimmed(at) {
			return nil, nil
		}
		run.at, run.cronName = at, owner.Name
		run.snap.Succeeded = jobCondition(run.job, batchv1.JobComplete)
		if err := p.readCronJob(ctx, run, owner); err != nil {
			return nil, err
		}
	} else if run.cronName == "" {
		return nil, nil
	} else if succeeded, known := p.r.endings.of(types.UID(c.UID)); known {
		run.snap.Succeeded, run.snap.Job.Body.Terminal = succeeded, true
	}
	run.snap.Minute = lock.TickMinute(run.at)
	run.key = p.tickKey(run.cronName, run.snap.Minute)
	p.followRecord(run)
	return run, nil
}

// readCronJob reads the rules of the schedule. Without it nothing is known to be allowed to overlap.
func (p *pass) readCronJob(ctx context.Context, run *tickRun, owner *metav1.OwnerReference) error {
	var cron batchv1.CronJob
	err := p.r.opts.Client.Get(ctx, client.ObjectKey{Namespace: p.name.Namespace, Name: owner.Name}, &cron)
	switch {
	case apierrors.IsNotFound(err), err == nil && cron.UID != owner.UID:
		return nil
	case err != nil:
		return fmt.Errorf("read CronJob %s: %w", owner.Name, err)
	}
	run.cron = &cron
	switch cron.Spec.ConcurrencyPolicy {
	case batchv1.ForbidConcurrent:
	case batchv1.ReplaceConcurrent:
		run.snap.Policy = plan.Replace
	default:
		run.snap.Policy = plan.Allow
	}
	if d := cron.Spec.StartingDeadlineSeconds; d != nil {
		run.snap.StartBy = run.at.Add(time.Duration(*d) * time.Second)
	}
	return nil
}

// followRecord keeps a run that was resumed to the rules that it was resumed by, whatever the CronJob says
// now: its record names either the plain lock or, where it has none, its tick.
func (p *pass) followRecord(run *tickRun) {
	s := &run.snap
	alone := s.Job.Record == string(p.tickOwner(run))
	switch {
	case p.isHolder(types.UID(run.uid)), s.Job.Record != "" && !alone:
		if s.Policy == plan.Allow {
			s.Policy = plan.Forbid
		}
	case alone:
		s.Policy = plan.Allow
		if s.Note.Outcome == plan.NotNoted && s.Job.RecordToken > s.Note.Spent {
			s.Note.Outcome, s.Note.Owner, s.Note.FencingToken = plan.Begun, s.Job.Record, s.Job.RecordToken
			s.Note.Token, s.Note.At = s.Job.RecordedToken+"#"+string(lock.StageStarted), p.now
		}
	}
}

// tickKey is the key of a tick. CronJobs that share a lock have ticks of their own, or one would keep the
// other from running in the same minute.
func (p *pass) tickKey(cron string, minute int64) lock.Key {
	k := p.terms.key
	if p.name.Name != naming.Lock("CronJob", cron) {
		k.Series = cron
	}
	return k.At(minute)
}

// tickOwner is who a run is to the store.
func (p *pass) tickOwner(run *tickRun) lock.Owner {
	return ownerOf(p.r.opts.Cluster, run.snap.Job, tickNonce)
}
