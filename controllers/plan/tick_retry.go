package plan

import "time"

// A run that loses its lock after it was started is lost, and its tick is nobody's from then on: the record
// says started, and nobody has the plain lock that it was started under. With RetryElsewhere another cluster
// may claim such a tick anew. So the plain lock must not be given back while an outcome has yet to be recorded,
// and none is recorded for a run that was lost.

// Retries reports whether the tick may run again in another cluster. Under Allow it has no lock to lose.
func (s TickSnapshot) Retries() bool { return s.Lock.RetryElsewhere && s.Policy != Allow }

// mayFollow reports whether a tick that another one started may still come to this cluster.
func (s TickSnapshot) mayFollow(now time.Time) bool {
	return s.Retries() && s.Store.SeenStage == StageStarted && !s.superseded() && (s.StartBy.IsZero() || now.Before(s.StartBy))
}

// forsaken reports whether the run was lost, rather than ended by somebody who meant it. Where that is not
// known it was ended: in doubt nothing runs again.
func (s TickSnapshot) forsaken() bool {
	if !s.Retries() {
		return false
	}
	switch s.Tenure.Ending {
	case LockLost, BackendLost, Unreachable, StartDeadline, ReleaseRequested, Draining, TickElsewhere:
		return true
	}
	return false
}

// settlesFirst reports whether the outcome of a run that has stopped is to be recorded under its lock.
func (s TickSnapshot) settlesFirst() bool { return s.Retries() && s.Tenure.Stopped }

// unsaid keeps the plain lock until the store has answered.
func (s TickSnapshot) unsaid(d TickDecision) TickDecision {
	d.Unsaid = s.Retries() && s.Tenure.Holding
	return d
}

// askAnew begins again with a tick of which nothing ran here.
func (s TickSnapshot) askAnew(msg string) TickDecision {
	d := s.act(Drop, s.Note.Why, msg)
	d.Note = TickNote{Spent: s.Job.RecordToken}
	return d
}
