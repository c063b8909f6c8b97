package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// retryTick is a tick of a schedule under Forbid whose Job waits here, by default for a lock with retryElsewhere.
func retryTick(changes ...func(*plan.TickSnapshot)) plan.TickSnapshot {
	s := plan.TickSnapshot{
		Lock: plan.Lock{FenceGrace: time.Second, Margin: time.Second, RenewInterval: tickRenew, StartDeadline: time.Minute, RetryElsewhere: true},
		Self: plan.Self{Cluster: "a", Deciding: true, Contending: true},
		Job: plan.Candidate{
			Kind: plan.KindJob, Namespace: "ns", Name: "job", UID: "1", Mode: plan.Exclusive, Marked: true, Gated: true, Quiet: true,
			Body: plan.Body{Exists: true},
		},
		Sighted: true, Minute: 10, Policy: plan.Forbid,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// sees has the store answer that cluster b has the tick, at a stage.
func sees(phase plan.Phase, stage plan.Stage) func(*plan.TickSnapshot) {
	return func(s *plan.TickSnapshot) {
		s.Store = plan.TickStore{Phase: phase, Answered: true, SeenStage: stage}
		s.Store.Seen = plan.Seen{Presence: plan.Away, Holder: plan.Holder{Cluster: "b"}}
	}
}

// taken has the store answer that nobody has the tick which this cluster had started.
func taken(s *plan.TickSnapshot) {
	s.Store = plan.TickStore{Phase: plan.Lost, Answered: true, Seen: plan.Seen{Presence: plan.Free}}
}

// ran makes the Job one that was started here under the plain lock.
func ran(s *plan.TickSnapshot) {
	s.Note = plan.TickNote{Outcome: plan.Begun, Owner: "a/1", Token: "a/1#5#started", FencingToken: 5, At: now}
	s.Job.Record, s.Job.RecordToken = "a/1", 7
	s.Store = plan.TickStore{Phase: plan.Granted, Stage: plan.StageStarted, Owner: "a/1", Token: "a/1#5#started", FencingToken: 5, Answered: true}
}

func begun(s *plan.TickSnapshot) { ran(s); s.Job.Record, s.Job.RecordToken = "", 0 }

func holding(s *plan.TickSnapshot)   { s.Tenure = plan.Tenure{Holding: true, Cleared: true} }
func byDefault(s *plan.TickSnapshot) { s.Lock.RetryElsewhere = false }

// over says why the tenure is over, and stopping that its process has stopped and the lock is being given back.
func over(why plan.Reason) func(*plan.TickSnapshot) {
	return func(s *plan.TickSnapshot) { s.Tenure = plan.Tenure{Ending: why} }
}

func stopping(why plan.Reason) func(*plan.TickSnapshot) {
	return func(s *plan.TickSnapshot) { s.Tenure = plan.Tenure{Holding: true, Stopped: true, Ending: why} }
}

func TestTicksThatMayRunElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		snap  plan.TickSnapshot
		kind  plan.TickActionKind
		stage plan.Stage
		// outcome and why are noted; where they are empty, nothing is.
		outcome plan.Outcome
		why     plan.Reason
		unsaid  bool
		ends    bool // withdrawn
	}{
		"a tick that was started elsewhere is waited for, and its lock left alone": {
			snap: retryTick(sees(plan.Asking, plan.StageStarted)), ends: true,
		},
		"it is skipped where the lock does not say so": {
			snap: retryTick(sees(plan.Asking, plan.StageStarted), byDefault), outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped under Allow, which has no lock to lose": {
			snap:    retryTick(sees(plan.Asking, plan.StageStarted), func(s *plan.TickSnapshot) { s.Policy = plan.Allow }),
			outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped once it succeeded there": {
			snap: retryTick(sees(plan.Asking, plan.StageSucceeded)), outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped once it failed there": {
			snap: retryTick(sees(plan.Asking, plan.StageFailed)), outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped once a newer one was started": {
			snap:    retryTick(sees(plan.Asking, plan.StageStarted), func(s *plan.TickSnapshot) { s.Store.Newest = 11 }),
			outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped once its starting deadline is over": {
			snap:    retryTick(sees(plan.Asking, plan.StageStarted), func(s *plan.TickSnapshot) { s.StartBy = now }),
			outcome: plan.Skipped, why: plan.TickElsewhere,
		},
		"it is skipped once it is too old": {
			snap:    retryTick(sees(plan.Asking, plan.StageStarted), func(s *plan.TickSnapshot) { s.Store.TooOld = plan.TickTooOld }),
			outcome: plan.Skipped, why: plan.TickTooOld,
		},
		"a claim that another cluster made a start of is asked for again": {
			snap: retryTick(sees(plan.Lost, plan.StageStarted)), kind: plan.Drop,
		},
		"a run whose tick another cluster took is ended": {
			snap: retryTick(ran, holding, sees(plan.Lost, plan.StageClaimed)), ends: true,
		},
		"so is one whose tick was taken and is nobody's any more": {
			snap: retryTick(ran, holding, taken), ends: true,
		},
		"a run whose tick cannot be told about goes on": {
			snap: retryTick(ran, holding, func(s *plan.TickSnapshot) { s.Store = plan.TickStore{Phase: plan.Lost} }),
		},
		"a tick that was taken before it ran here is asked for anew": {
			snap: retryTick(begun, sees(plan.Lost, plan.StageClaimed)), kind: plan.Drop, outcome: plan.NotNoted, why: "forgotten",
		},
		"a run that lost its lock leaves the record to others": {
			snap: retryTick(ran, over(plan.LockLost)), outcome: plan.Failed, why: plan.TickLost,
		},
		"a run whose store was away leaves the record to others": {
			snap: retryTick(ran, over(plan.BackendLost)), outcome: plan.Failed, why: plan.TickLost,
		},
		"a run that was handed over by an operator leaves the record to others": {
			snap: retryTick(ran, over(plan.ReleaseRequested)), outcome: plan.Failed, why: plan.TickLost,
		},
		"it is recorded as failed where the lock does not say so": {
			snap: retryTick(ran, over(plan.LockLost), byDefault), kind: plan.Stamp, stage: plan.StageFailed,
		},
		"a run that made way for a newer one has failed for all": {
			snap: retryTick(ran, stopping(plan.HandOver)), kind: plan.Stamp, stage: plan.StageFailed, unsaid: true,
		},
		"a run that was held for too long has failed for all": {
			snap: retryTick(ran, stopping(plan.MaxHoldReached)), kind: plan.Stamp, stage: plan.StageFailed, unsaid: true,
		},
		"a run that ended for a reason nobody remembers has failed for all": {
			snap: retryTick(ran, over("")), kind: plan.Stamp, stage: plan.StageFailed,
		},
		"the lock of a run that was lost is given back without a word": {
			snap: retryTick(ran, stopping(plan.BackendLost)),
		},
		"a run of which nothing was seen is put back only after its lock": {
			snap: retryTick(ran, stopping(plan.StartDeadline), func(s *plan.TickSnapshot) { s.Sighted = false }),
		},
		"and then is": {
			snap:    retryTick(ran, over(plan.StartDeadline), func(s *plan.TickSnapshot) { s.Sighted = false }),
			outcome: plan.PuttingBack, why: plan.StartDeadline,
		},
		"a Job that was deleted has failed for all before its lock is free": {
			snap: retryTick(ran, stopping(plan.HolderGone), func(s *plan.TickSnapshot) { s.Job.Body = plan.Body{VanishedAt: now} }),
			kind: plan.Stamp, stage: plan.StageFailed, unsaid: true,
		},
		"a Job that is complete keeps its lock until that is recorded": {
			snap: retryTick(ran, stopping(plan.Finished), func(s *plan.TickSnapshot) { s.Job.Body.Terminal, s.Succeeded = true, true }),
			kind: plan.Stamp, stage: plan.StageSucceeded, unsaid: true,
		},
		"an order that is not answered keeps it too": {
			snap: retryTick(ran, stopping(plan.Finished), func(s *plan.TickSnapshot) {
				s.Job.Body.Terminal, s.Succeeded, s.Store.Stamping = true, true, plan.StageSucceeded
			}),
			unsaid: true,
		},
		"one whose outcome stands in the store does not": {
			snap: retryTick(ran, stopping(plan.Finished), func(s *plan.TickSnapshot) {
				s.Job.Body.Terminal, s.Succeeded, s.Store.Stage = true, true, plan.StageSucceeded
			}),
			outcome: plan.Succeeded, why: plan.TickEnded,
		},
		"nor one whose tick is another's by now": {
			snap: retryTick(ran, stopping(plan.Finished), func(s *plan.TickSnapshot) { s.Job.Body.Terminal, s.Succeeded = true, true },
				sees(plan.Lost, plan.StageStarted)),
			outcome: plan.Succeeded, why: plan.TickEnded,
		},
		"without retryElsewhere a lock waits for no outcome": {
			snap: retryTick(ran, stopping(plan.Finished), byDefault, func(s *plan.TickSnapshot) { s.Job.Body.Terminal, s.Succeeded = true, true }),
			kind: plan.Stamp, stage: plan.StageSucceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := plan.DecideTick(now, c.snap)
			want := c.snap.Note
			if c.why != "" {
				want.Outcome, want.Why = c.outcome, c.why
			}
			if c.why == "forgotten" {
				want = plan.TickNote{}
			}
			if d.Kind != c.kind || d.Stage != c.stage || d.Note.Outcome != want.Outcome || d.Note.Why != want.Why || d.Unsaid != c.unsaid || d.Withdrawn != c.ends {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

func TestALockIsGivenBackOnlyOnceTheOutcomeOfItsTickIsRecorded(t *testing.T) {
	t.Parallel()
	s := running()
	s.Status.State, s.Status.Ending = plan.Releasing, plan.Finished
	for unsaid, want := range map[bool]plan.ActionKind{true: plan.NoAction, false: plan.Release} {
		s.Candidates[0].TickUnsaid = unsaid
		if d := plan.Decide(now, s); d.Action.Kind != want || d.Status != s.Status {
			t.Errorf("unsaid %v: %+v", unsaid, d)
		}
	}
	s.Candidates[0].TickUnsaid, s.Store.Phase = true, plan.Lost
	if d := plan.Decide(now, s); d.Status.State != plan.Idle {
		t.Errorf("a lock that is lost anyway: %+v", d)
	}
}
