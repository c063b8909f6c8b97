package plan

import "time"

// DecideTick takes the next step for one scheduled run:
//
//	claim -> plain lock (Forbid, Replace) -> stamp started -> status -> resume -> ... -> stamp the outcome -> status
//
// The stamp is the point of no return: it is written on a claim that still stands, by nobody else, and
// never taken back unless no process of the run ever was. Everything before it can be repeated by anybody;
// after it the tick is this Job's, which runs it or never does.
func DecideTick(now time.Time, s TickSnapshot) TickDecision {
	if !s.Self.Deciding {
		return s.idle(NotDeciding, "another replica decides")
	}
	switch {
	case s.Note.Outcome.Final():
		return s.wrapUp()
	case s.Self.IdentityConflict:
		return s.idle(IdentityConflict, "no tick is run while two clusters use one identity")
	case s.Note.Outcome == PuttingBack:
		return s.putBack()
	case s.Note.Outcome == Halting && !s.Job.Body.Terminal:
		return s.alone(now)
	case s.Job.Body.Terminal:
		return s.ended()
	case s.ran():
		return s.running(now)
	case !s.Job.Body.Exists || s.Job.Body.Deleting:
		return s.deleted()
	case s.Note.Outcome == Begun || s.mine() && s.Store.Stage == StageStarted:
		return s.begin(now)
	}
	return s.queue(now)
}

// ran reports whether conch resumed the Job for this tick: the patch that did so left a record.
func (s TickSnapshot) ran() bool { return s.Job.Record != "" && s.Job.RecordToken > s.Note.Spent }

// mine reports whether the tick's record bears this Job.
func (s TickSnapshot) mine() bool { return s.Store.Phase == Granted }

// elsewhere reports whether the store said that another one started the tick.
func (s TickSnapshot) elsewhere() bool {
	return s.Store.Answered && s.Store.SeenStage.begun() && (s.Store.Phase == Asking || s.Store.Phase == Lost)
}

// gone reports whether the store said that a tick that was granted is no longer ours.
func (s TickSnapshot) gone() bool {
	return s.Store.Phase == Lost && s.Store.Answered && (s.Store.SeenStage != Unclaimed || s.Store.Seen.Presence == Free)
}

// mayNot names why this cluster begins no run.
func (s TickSnapshot) mayNot() (Reason, string) {
	return Snapshot{Lock: s.Lock, Self: s.Self}.mustNotContend()
}

// idle changes nothing. A Job whose run has begun stays the business of the plain lock.
func (s TickSnapshot) idle(r Reason, msg string) TickDecision {
	return TickDecision{Note: s.Note, Pending: true, Reason: r, Message: msg}
}

func (s TickSnapshot) act(k TickActionKind, r Reason, msg string) TickDecision {
	d := s.idle(r, msg)
	d.Kind = k
	return d
}

// stamp brings the tick to a stage, if that is not under way.
func (s TickSnapshot) stamp(to Stage, r Reason, msg string) TickDecision {
	if s.Store.Stamping == to {
		return s.idle(r, msg)
	}
	d := s.act(Stamp, r, msg)
	d.Stage = to
	return d
}

func (s TickSnapshot) note(o Outcome, r Reason, msg string) TickDecision {
	d := s.idle(r, msg)
	d.Note.Outcome, d.Note.Why, d.Note.Message = o, r, msg
	return d
}

// skip notes that the tick does not run here. What is left of a claim is cleared away after that.
func (s TickSnapshot) skip(r Reason, msg string) TickDecision { return s.note(Skipped, r, msg) }

// skipTaken is skip for a tick that another one started.
func (s TickSnapshot) skipTaken() TickDecision {
	where := s.Store.Seen.Holder.Cluster
	d := s.skip(TickElsewhere, "it was started in cluster "+where)
	d.Note.Where = where
	return d
}

// queue takes the steps up to the stamp.
func (s TickSnapshot) queue(now time.Time) TickDecision {
	r, msg := s.mayNot()
	switch {
	case s.elsewhere() && !s.mayFollow(now):
		return s.skipTaken()
	case s.Store.TooOld != "":
		return s.skip(s.Store.TooOld, "the store lets nobody run it any more")
	case !s.StartBy.IsZero() && !now.Before(s.StartBy) && s.Store.Stamping == Unclaimed:
		return s.skip(TickLate, "it could not start within startingDeadlineSeconds")
	case r != "":
		return s.standBack(r, msg)
	case now.Before(s.Job.BackOffUntil) && !s.Tenure.Holding:
		return s.standBack(Contending, "the Job stands back after it gave the lock up").until(now, s.Job.BackOffUntil)
	}
	d := s.contend(now)
	if !s.StartBy.IsZero() {
		d = d.until(now, s.StartBy)
	}
	return d
}

// standBack leaves the tick to others. An order to stamp that is out has to be answered first.
func (s TickSnapshot) standBack(r Reason, msg string) TickDecision {
	d := s.idle(r, msg)
	d.Withdrawn = s.Store.Stamping == Unclaimed
	switch s.Store.Phase {
	case Asking, Granted:
		if s.Store.Stamping == Unclaimed {
			d.Kind = Unclaim
		}
	case Lost, GivenBack:
		d.Kind = Drop
	}
	return d
}

func (s TickSnapshot) contend(now time.Time) TickDecision {
	switch s.Store.Phase {
	case NoEntry:
		return s.act(Claim, Contending, "asking for the tick")
	case Lost, GivenBack:
		return s.act(Drop, Contending, "the claim is gone: asking again").until(now, now.Add(time.Millisecond))
	case Asking:
		d := s.idle(Contending, "asking for the tick")
		if s.Store.Answered && s.Store.Seen.Presence == Away {
			// Whoever claimed it wants the plain lock next: two that have one each would wait for each other.
			d.Withdrawn = true
			d.Reason, d.Message = HeldElsewhere, "claimed in cluster "+s.Store.Seen.Holder.Cluster
			if s.Store.SeenStage.begun() {
				d.Message = "started in cluster " + s.Store.Seen.Holder.Cluster + ": it runs here if it is lost there"
			}
		}
		return d
	case Granted:
		return s.claimed(now)
	}
	return s.idle(Contending, "the claim is being given back")
}

// claimed goes from the claim to the stamp.
func (s TickSnapshot) claimed(now time.Time) TickDecision {
	switch {
	case now.Before(s.Store.NotBefore):
		return s.idle(Contending, "the store lost data: whoever runs the tick gets time to say so").until(now, s.Store.NotBefore)
	case s.Policy != Allow && !s.Tenure.Cleared:
		d := s.idle(TickClaimed, "claimed: waiting for the lock")
		d.Pending = s.Tenure.Holding
		return d
	case !now.Before(s.Store.ValidUntil):
		return s.idle(CannotTell, "the store has not confirmed the claim in time").until(now, now.Add(tickLook))
	}
	return s.stamp(StageStarted, TickClaimed, "claimed: it is being recorded as started")
}

// begin goes from the stamp to the start.
func (s TickSnapshot) begin(now time.Time) TickDecision {
	r, msg := s.mayNot()
	switch {
	case s.elsewhere() && !s.Retries():
		return s.skipTaken()
	case s.gone():
		return s.askAnew("another cluster took the tick before it ran here")
	case !s.mine() || !s.Store.Stage.begun():
		return s.idle(CannotTell, "the store has not confirmed yet that it was started here").until(now, now.Add(tickLook))
	case s.Store.Stage.over():
		return s.note(Failed, TickLost, "the store says that it is over")
	case r != "" && !s.Tenure.Holding, s.superseded() && !s.Tenure.Holding:
		if r == "" {
			r, msg = TickSuperseded, "a newer tick was started before it could run"
		}
		return s.note(PuttingBack, r, msg)
	case s.Note.Outcome != Begun || s.Note.Token != s.Store.Token:
		return s.begun(now)
	case s.Policy == Allow:
		return s.alone(now)
	}
	d := s.idle(TickStarted, "recorded as started: waiting for the lock")
	d.Pending = false
	return d
}

// superseded reports whether a newer tick was started while this one waited for its lock again.
func (s TickSnapshot) superseded() bool { return s.Policy != Allow && s.Store.Newest > s.Minute }

// begun writes down which grant the run goes by.
func (s TickSnapshot) begun(now time.Time) TickDecision {
	d := s.note(Begun, TickStarted, "recorded as started")
	d.Note.Owner, d.Note.Token, d.Note.FencingToken = s.Store.Owner, s.Store.Token, s.Store.FencingToken
	if d.Note.At.IsZero() {
		d.Note.At = now
	}
	return d
}

func (d TickDecision) until(now, at time.Time) TickDecision {
	d.Revisit = Decision{Revisit: d.Revisit}.until(now, at).Revisit
	return d
}

// Cleared reports whether the holder may be started now, as far as the lock is concerned.
func (s Snapshot) Cleared(now time.Time) bool {
	if s.Status.State != Held || !s.Status.Ours(s.Self.Cluster) || now.Before(s.Status.NotBefore) || !s.mayStart(now) {
		return false
	}
	_, other := s.otherActive(now, s.Status.Holder.UID)
	return !other
}
