package plan_test

import (
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// tickRetry is what Redis and the judges know about ticks that may run again in another cluster.
type tickRetry struct {
	// taken are the fencing tokens of the starts that ticks were claimed anew from.
	taken map[int64]int64
	// over are the ticks that have an outcome in Redis.
	over map[int64]bool
	// lostUntil is until when no start counts as forsaken, because data was lost.
	lostUntil time.Time
}

// forsaken reports whether a tick may be claimed anew: nobody has the lock that it was started under.
func (w *tickWorld) forsaken(r *tickRecord) bool {
	return w.retries && r != nil && r.stage == plan.StageStarted && w.plain == nil && !w.now.Before(w.retry.lostUntil)
}

func (w *tickWorld) take(r *tickRecord, minute int64) {
	w.say("the tick of %d is taken from %s", minute, r.owner)
	w.retry.taken[minute] = r.fence
}

// claimFor writes a claim.
func (w *tickWorld) claimFor(owner string, minute int64) *tickRecord {
	w.fence++
	r := &tickRecord{owner: owner, fence: w.fence, stage: plan.StageClaimed, expires: w.now.Add(tickTTL)}
	w.ticks[minute] = r
	return r
}

// tenure is where the plain lock stands with a Job.
func (s *tickSite) tenure(j *tickJob) plan.Tenure {
	if s.holder != j {
		return plan.Tenure{Ending: s.endings[j.minute]}
	}
	return plan.Tenure{Holding: true, Cleared: s.ending == "" && !s.w.now.Before(s.w.settleUntil), Stopped: s.stopped, Ending: s.ending}
}

// checkStart judges a start: a tick is started once, or once in each cluster where it may run again; and
// never after Redis has an outcome of it.
func (w *tickWorld) checkStart(j *tickJob) {
	switch {
	case w.starts[j.minute] > 1 && !w.retries, j.starts > 1:
		w.fail("tick %d was started %d times", j.minute, w.starts[j.minute])
	case w.retry.over[j.minute]:
		w.fail("tick %d was started though it was over", j.minute)
	}
	for _, s := range w.sites {
		if other := s.jobs[j.minute]; other != nil && (other.terminal || other.replaced && other.starts > 0) && !s.dead && !w.mayOverlap && !w.flushed {
			w.fail("tick %d was started though it had ended in %s", j.minute, s.name)
		}
	}
}

// checkSkip judges that a tick is given up here because it is another cluster's: where it may run again, it
// must be over, or a newer one have been started.
func (w *tickWorld) checkSkip(s *tickSite, minute int64) {
	n := s.notes[minute]
	if w.retries && w.policy != plan.Allow && n.Outcome == plan.Skipped && n.Why == plan.TickElsewhere && !w.retry.over[minute] && w.newest() <= minute {
		w.fail("%s gives up tick %d, which is not over", s.name, minute)
	}
}

// jobsOf are the Jobs of a minute: one, or none.
func (s *tickSite) jobsOf(minute int64) []*tickJob {
	if j := s.jobs[minute]; j != nil {
		return []*tickJob{j}
	}
	return nil
}
