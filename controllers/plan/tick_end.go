package plan

import "time"

// running watches over a Job that was resumed for its tick.
func (s TickSnapshot) running(now time.Time) TickDecision {
	switch {
	case s.Policy == Allow:
		return s.alone(now)
	case s.Tenure.Holding && !s.settlesFirst():
		d := s.idle(TickStarted, "it runs")
		d.Pending, d.Withdrawn, d.Replaced = false, s.gone(), s.Policy == Replace && s.Awaited
		return d
	case s.Job.works():
		return s.idle(TickLost, "it runs without its lock and is being stopped").until(now, now.Add(tickLook))
	case !s.Job.Body.Exists || s.Job.Body.Deleting:
		return s.conclude(Failed, TickDeleted, "its Job was deleted")
	case s.Tenure.Holding && s.forsaken():
		return s.idle(TickLost, "its tenure is being ended")
	case s.Tenure.Ending == StartDeadline && !s.Sighted:
		return s.note(PuttingBack, StartDeadline, "no pod of it ran in time")
	case s.forsaken():
		return s.note(Failed, TickLost, "it lost its lock after it was started; another cluster may run it")
	}
	return s.conclude(Failed, TickLost, "it lost its lock after it was started, and is not run again")
}

// alone decides for a Job that runs without a plain lock: its tick is the lock, and what the status
// of a lock would say stands in the tick's entry.
func (s TickSnapshot) alone(now time.Time) TickDecision {
	d := s.idle(TickStarted, "it runs")
	step := s.tenure()
	next := Decide(now, step)
	d.Reason, d.Message, d.Revisit = next.Reason, next.Message, next.Revisit
	switch {
	case next.Status.State == Releasing:
		if !s.Job.Body.Exists || s.Job.Body.Deleting {
			return s.conclude(Failed, TickDeleted, "its Job was deleted")
		}
		return s.conclude(Failed, TickLost, "it was stopped: "+s.Note.Message)
	case next.Status.State == Fencing && s.Note.Outcome != Halting:
		d.Note.Outcome, d.Note.Why, d.Note.Message = Halting, next.Status.Ending, next.Message
	case next.Action.Kind != NoAction && next.Action.Kind != Continue:
		d.Kind, d.Effect, d.Status = Run, next.Action, step.Status
	}
	return d
}

// tenure is the run as if it held a lock of its own. Its record does not run out, so that silence of the
// store is no reason to stop it.
func (s TickSnapshot) tenure() Snapshot {
	st := Status{
		State: Held, Token: s.Note.Token, FencingToken: s.Note.FencingToken, AcquiredAt: s.Note.At,
		Holder: Holder{
			Cluster: s.Self.Cluster, Namespace: s.Job.Namespace, Kind: s.Job.Kind, Name: s.Job.Name, UID: s.Job.UID, Owner: s.Note.Owner,
		},
	}
	if s.ran() {
		st.StartedAt = s.Note.At
	}
	switch {
	case s.Note.Outcome == Halting:
		st.State, st.Ending = Fencing, s.Note.Why
	case s.Lock.Gone && s.ran():
		st.State, st.Ending = Fencing, LockDeleted // there is no status to say so
	}
	store := Store{
		Phase: s.Store.Phase, Owner: s.Store.Owner, Token: s.Store.Token, FencingToken: s.Store.FencingToken,
		ValidUntil: s.Store.ValidUntil, Answered: s.Store.Answered, Seen: s.Store.Seen,
	}
	job, lock := s.Job, s.Lock
	job.TickPending = false
	lock.HoldOnLoss = true
	return Snapshot{Lock: lock, Self: s.Self, Status: st, Candidates: []Candidate{job}, Store: store}
}

// ended records how the run ended.
func (s TickSnapshot) ended() TickDecision {
	switch {
	case !s.ran() && !(s.mine() && s.Store.Stage.begun()) && s.Note.Outcome != Begun:
		return s.standBack(TickEnded, "the Job ended without having been started by conch")
	case s.Succeeded:
		return s.conclude(Succeeded, TickEnded, "its Job is complete")
	}
	return s.conclude(Failed, TickEnded, "its Job has failed")
}

// deleted deals with a Job that goes before it was resumed.
func (s TickSnapshot) deleted() TickDecision {
	if s.Note.Outcome == Begun || s.mine() && s.Store.Stage.begun() || s.Store.Stamping != Unclaimed {
		return s.conclude(Failed, TickDeleted, "its Job was deleted before it ran")
	}
	return s.standBack(TickDeleted, "its Job is gone")
}

// conclude stamps an outcome, and notes it once the store has it or has something else for good.
func (s TickSnapshot) conclude(o Outcome, r Reason, msg string) TickDecision {
	stage := StageFailed
	if o == Succeeded {
		stage = StageSucceeded
	}
	ending := s.Tenure.Holding && o == Failed && r != TickEnded
	switch {
	case ending && !s.settlesFirst():
		return s.idle(r, msg+"; its tenure is being ended")
	case s.Store.Phase == GivingUp:
		return s.idle(r, msg)
	case s.mine() && !s.Store.Stage.over() && s.Store.Stage.begun():
		return s.unsaid(s.stamp(stage, r, msg))
	case s.mine() && s.Store.Stamping != Unclaimed:
		return s.unsaid(s.idle(r, msg))
	case ending:
		return s.idle(r, msg+"; its tenure is being ended")
	}
	return s.note(o, r, msg)
}

// putBack gives back a tick of which nothing ever ran.
func (s TickSnapshot) putBack() TickDecision {
	switch s.Store.Phase {
	case Granted:
		return s.act(PutBack, s.Note.Why, s.Note.Message)
	case GivingUp:
		return s.idle(s.Note.Why, "the tick is being put back")
	case GivenBack, Lost, Asking:
		return s.askAnew("the tick is free")
	}
	// Nothing is known here: asking as the same owner tells, and finds the record if it is still there.
	d := s.idle(s.Note.Why, "the tick is free, or is found to be ours still")
	d.Note = TickNote{Spent: s.Job.RecordToken}
	return d
}

// wrapUp clears away what a tick leaves behind that is over for this cluster. Its Job goes if it cannot
// run any more; one that ran to its end is the CronJob's to keep.
func (s TickSnapshot) wrapUp() TickDecision {
	d := s.idle(s.Note.Why, s.Note.Message)
	d.Withdrawn = true
	switch {
	case s.Store.Stamping != Unclaimed || s.Store.Phase == GivingUp:
		return d
	case s.Store.Phase == Asking, s.Store.Phase == Granted && !s.Store.Stage.begun():
		d.Kind = Unclaim
	case s.Store.Phase != NoEntry:
		d.Kind = Drop
	case s.Note.Outcome == Succeeded, s.Job.Body.Terminal, !s.Job.Body.Exists, s.Job.Body.Deleting, !s.Job.Gated:
	case s.Job.works():
	default:
		d.Kind = DeleteJob
	}
	return d
}
