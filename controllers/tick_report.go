package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// noted is an entry of status.recentTicks.
type noted struct {
	note      plan.TickNote
	job, cron string
	at        time.Time
}

// readNotes translates status.recentTicks, by the UID of the Job.
func readNotes(l *lockv1alpha1.DistributedLock, cluster string) map[string]noted {
	out := map[string]noted{}
	for _, t := range l.Status.RecentTicks {
		n := plan.TickNote{
			Outcome: plan.Outcome(t.Outcome), Token: t.Token, FencingToken: t.FencingToken, Why: plan.Reason(t.Reason), Message: t.Message,
			Spent: t.Spent, At: timeOf(t.StartedAt),
		}
		n.Owner, _, _ = strings.Cut(t.Token, "#")
		if t.Cluster != cluster {
			n.Where = t.Cluster
		}
		out[string(t.UID)] = noted{note: n, job: t.Job, cron: t.CronJob, at: t.ScheduledAt.UTC()}
	}
	return out
}

// trimmed reports whether a run that the status does not name is older than those that it does: it was over
// long ago.
func (p *pass) trimmed(at time.Time) bool {
	if len(p.notes) < lockv1alpha1.MaxRecentTicks {
		return false
	}
	for _, n := range p.notes {
		if !at.After(n.at) {
			return true
		}
	}
	return false
}

// fillTicks writes down what was decided about each run and has been done.
func (p *pass) fillTicks(s *lockv1alpha1.DistributedLockStatus) {
	changed := false
	ticks := slices.Clone(s.RecentTicks)
	for _, run := range p.ticks {
		if !run.done || run.dec.Note == run.snap.Note && p.notes[run.uid].note == run.dec.Note {
			continue
		}
		changed = true
		// Whoever knows of a later acquisition than the store does notices that it lost data.
		s.HighestSeen = max(s.HighestSeen, run.snap.Store.FencingToken, run.snap.Store.Seen.FencingToken, run.dec.Note.FencingToken)
		ticks = slices.DeleteFunc(ticks, func(t lockv1alpha1.Tick) bool { return t.UID == types.UID(run.uid) })
		if run.dec.Note != (plan.TickNote{}) {
			ticks = append(ticks, p.tickLine(run))
		}
	}
	if !changed {
		return
	}
	slices.SortStableFunc(ticks, func(a, b lockv1alpha1.Tick) int {
		return cmp.Or(b.ScheduledAt.Compare(a.ScheduledAt.Time), cmp.Compare(a.Job, b.Job))
	})
	s.RecentTicks = shorten(ticks)
}

// shorten drops the oldest runs that are over, and only then others.
func shorten(ticks []lockv1alpha1.Tick) []lockv1alpha1.Tick {
	for i := len(ticks) - 1; i >= 0 && len(ticks) > lockv1alpha1.MaxRecentTicks; i-- {
		if plan.Outcome(ticks[i].Outcome).Final() {
			ticks = slices.Delete(ticks, i, i+1)
		}
	}
	return ticks[:min(len(ticks), lockv1alpha1.MaxRecentTicks)]
}

func (p *pass) tickLine(run *tickRun) lockv1alpha1.Tick {
	n := run.dec.Note
	t := lockv1alpha1.Tick{
		ScheduledAt: metav1.NewTime(run.at), CronJob: run.cronName, Job: run.snap.Job.Name, UID: types.UID(run.uid), Cluster: n.Where,
		Outcome: string(n.Outcome), Reason: string(n.Why), Message: n.Message, Token: n.Token, FencingToken: n.FencingToken,
		StartedAt: microTime(n.At), Spent: n.Spent,
	}
	if n.Token != "" {
		t.Cluster = p.r.opts.Cluster
	}
	return t
}

// tellTicks logs and announces what became of runs, once it is written.
func (p *pass) tellTicks(ctx context.Context) {
	for _, run := range p.ticks {
		before, after := p.notes[run.uid].note, run.dec.Note
		if !run.done || before.Outcome == after.Outcome {
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Tick changed", "key", run.key.String(), "job", run.snap.Job.Name, "from", string(before.Outcome), "to", string(after.Outcome),
			"reason", string(after.Why), "token", after.Token)
		p.announceTick(run)
	}
}

// announceTick tells the CronJob what became of one of its runs, where the Job itself cannot: it is gone
// in a moment, or tells only how its process ended.
func (p *pass) announceTick(run *tickRun) {
	var about, related runtime.Object
	if run.job != nil {
		related = run.job
	}
	if about = related; run.cron != nil {
		about = run.cron
	}
	if about == nil {
		return
	}
	n := run.dec.Note
	text := fmt.Sprintf("the run of %s (Job %s): %s", run.at.Format("2006-01-02T15:04Z"), run.snap.Job.Name, n.Message)
	var e note
	switch {
	case n.Outcome == plan.Skipped && n.Why == plan.TickElsewhere:
		e = normal("TickRunsElsewhere", "Skip", text)
	case n.Outcome == plan.Skipped:
		e = warning("TickSkipped", "Skip", text)
	case n.Outcome == plan.Begun:
		e = normal("TickStarted", "Start", text)
	case n.Outcome == plan.PuttingBack:
		e = warning("TickPutBack", "PutBack", text)
	case n.Outcome == plan.Halting, n.Outcome == plan.Failed && n.Why != plan.TickEnded:
		e = warning("TickLost", "Fence", text)
	default:
		return
	}
	p.r.opts.Recorder.Eventf(about, related, e.kind, e.reason, e.action, "%s", e.text)
}
