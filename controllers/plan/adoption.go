package plan

import "time"

// leftBehind deals with an attempt of this cluster that the store knows and the status does not:
// somebody acquired and was gone before writing it down. By the order of effects it never started,
// so it is cleared away and its candidate asks afresh. Whoever acquired it may only be paused, and
// about to call it off: nothing that can still be called off is ever adopted.
func (s Snapshot) leftBehind() (Decision, bool) {
	if s.Store.Phase != Asking || s.Store.Seen.Presence != Here && s.Store.Seen.Presence != Remains {
		return Decision{}, false
	}
	d := s.do(Action{Kind: Sweep}, Contending, "an earlier attempt of this cluster is being cleared away")
	d.Status = s.noted()
	return d, true
}

// recorded finds a candidate that works and bears a record of its tenure, though the status names
// nobody: the lock's object or its status was lost, or conch had been removed.
func (s Snapshot) recorded(now time.Time) (Candidate, bool) {
	var best Candidate
	for _, c := range s.Candidates {
		if c.Active() && c.Record != "" && c.RecordToken > best.RecordToken && c.Ended < c.RecordToken &&
			!c.death(now, s.Lock.FenceGrace, false).Confirmed {
			best = c
		}
	}
	return best, best.UID != ""
}

// Recorded is the status that the record of a working candidate describes, if there is one.
func Recorded(now time.Time, s Snapshot) (Status, bool) {
	c, found := s.recorded(now)
	if !found {
		return Status{}, false
	}
	return s.adoptRecord(c).Status, true
}

func (s Snapshot) adoptRecord(c Candidate) Decision {
	if s.Self.IdentityConflict {
		return s.wait(IdentityConflict, "nothing is adopted while two clusters use one identity")
	}
	st := Status{
		State: Held, Holder: s.holderOf(c, c.Record),
		Token: c.RecordedToken, FencingToken: c.RecordToken,
		HighestSeen: max(s.Status.HighestSeen, c.RecordToken),
		AcquiredAt:  c.Created, StartedAt: c.Created,
	}
	switch {
	case s.Lock.Gone:
		st.State, st.Ending = Fencing, LockDeleted
	case c.RecordToken < s.Status.HighestSeen:
		// Somebody acquired the key after this holder, so it no longer has it.
		st.State, st.Ending = Fencing, LockLost
	}
	return s.write(st, Adopted, "the holder's own record names it")
}

// clearOther deals with a candidate that may be working and holds nothing. It is stopped only where
// the store answered and neither it, nor the status, nor the candidate's own record names it as the
// holder; until then nothing starts beside it.
func (s Snapshot) clearOther(now time.Time, c Candidate) Decision {
	switch {
	case c.Stray:
		return s.retire(now, c)
	case c.Composite():
		return s.clearComposite(now, c)
	case c.Body.Deleting || !c.Body.Exists:
		d := s.wait(OthersActive, c.Name+" is still stopping")
		return d.until(now, Dead(now, c.Body, s.Lock.FenceGrace, false).After)
	case s.Self.IdentityConflict || !s.storeAnswered() || s.recordNames(c):
		return s.wait(OthersActive, c.Name+" runs without holding the lock; nothing starts beside it")
	case c.Mode == Leader && s.Lock.Demote:
		return s.do(Action{Kind: Unlabel, Target: c}, OthersActive, c.Name+" carries the leader's label and does not hold the lock")
	case !c.Marked:
		return s.wait(OthersActive, c.Name+" runs without holding the lock, and its template is not marked; nothing starts beside it")
	case now.Before(c.BackOffUntil):
		d := s.wait(OthersActive, c.Name+" runs without holding the lock; its kind was stopped a moment ago")
		return d.until(now, c.BackOffUntil)
	}
	return s.do(Action{Kind: Stop, Target: c, Grace: c.Body.Grace}, GateBypassed, c.Name+" runs without holding the lock")
}

// recordNames reports whether a candidate's own record makes it the holder, for all that is known.
func (s Snapshot) recordNames(c Candidate) bool {
	known := max(s.Status.FencingToken, s.Status.HighestSeen, s.Store.Seen.FencingToken, s.Store.Seen.Highest)
	return c.Record != "" && c.RecordToken > known
}

// storeAnswered reports whether the last word of the store is an answer.
func (s Snapshot) storeAnswered() bool {
	return s.Store.Unanswered.IsZero() && s.Store.Answered
}
