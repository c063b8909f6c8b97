package plan

import "time"

// decideFencing stops the holder and waits for proof. It never leads back to Held.
func (s Snapshot) decideFencing(now time.Time) Decision {
	h, found := s.holder()
	if s.stopped(now, h, found) {
		return s.beginReleasing(s.Status.Ending, "the holder has stopped", false)
	}
	if !found {
		return s.holderVanished(now, h)
	}
	return s.stop(now, h)
}

// stop takes the next step to end a holder that still exists.
func (s Snapshot) stop(now time.Time, h Candidate) Decision {
	r, msg := s.Status.Ending, "the holder is being stopped"
	switch {
	case h.Mode == Exclusive && h.Gated:
		return s.do(Action{Kind: Spoil, Target: h}, r, "the candidate had not started")
	case h.Mode == Leader && !h.Leading && s.neverStarted(h):
		return s.do(Action{Kind: Spoil, Target: h}, r, "the candidate had not started")
	case s.demotes(h) && h.Leading:
		return s.do(Action{Kind: Unlabel, Target: h}, r, "the leader is being demoted")
	case s.demotes(h):
		return s.wait(r, "the former leader has its time to read that it is none").
			until(now, h.UnlabelledSince.Add(s.Lock.FenceGrace))
	}
	grace := s.stopGrace(h)
	if h.Body.Deleting && !s.hurry(now, h, grace) {
		return s.wait(r, msg).until(now, s.abandonAt(h))
	}
	if unreachable := h.Body.Deleting && !h.Body.Node.Ready; unreachable && s.givesUp(now, h) {
		return s.beginReleasing(Unreachable, "given back without confirmed death, as onUnreachable: Release asks", true)
	}
	return s.do(Action{Kind: Stop, Target: h, Grace: grace}, r, msg)
}

// neverStarted reports whether a leader without label never got it in this tenure.
func (s Snapshot) neverStarted(h Candidate) bool {
	return s.Status.StartedAt.IsZero() && h.RecordToken != s.Status.FencingToken
}

// demotes reports whether this tenure ends by taking the label off, the process left alone.
func (s Snapshot) demotes(h Candidate) bool {
	return h.Mode == Leader && s.Lock.Demote && !h.Body.Deleting
}

// stopGrace is how long the holder gets. A lock that is lost or about to be has no time to give; a
// hand-over in good order leaves the pod its own.
func (s Snapshot) stopGrace(h Candidate) time.Duration {
	switch s.Status.Ending {
	case LockLost, BackendLost:
		return max(time.Second, min(h.Body.Grace, s.Lock.FenceGrace)).Truncate(time.Second)
	}
	return h.Body.Grace
}

// hurry reports whether a deletion that is under way leaves the holder more time than it has.
func (s Snapshot) hurry(now time.Time, h Candidate, grace time.Duration) bool {
	return h.Body.Deadline.Sub(now) > grace+time.Second
}

func (s Snapshot) abandonAt(h Candidate) time.Time {
	if !s.Lock.ReleaseLost {
		return time.Time{}
	}
	return h.Body.Deadline.Add(s.Lock.FenceGrace + s.Lock.TakeoverDelay)
}

func (s Snapshot) givesUp(now time.Time, h Candidate) bool {
	return s.Lock.ReleaseLost && !now.Before(s.abandonAt(h))
}

// decideReleasing gives the key back and closes the tenure.
func (s Snapshot) decideReleasing() Decision {
	switch s.Store.Phase {
	case GivingUp:
		return s.wait(s.Status.Ending, "the key is being given back")
	case GivenBack, Lost:
		st := Status{State: Idle, HighestSeen: max(s.Status.HighestSeen, s.Status.FencingToken)}
		return s.write(st, Released, "the lock is free")
	}
	if s.Self.IdentityConflict {
		return s.wait(IdentityConflict, "nothing is given back while two clusters use one identity")
	}
	return s.do(Action{Kind: Release, Unclean: s.Status.Unclean}, s.Status.Ending, "the key is being given back")
}

// stopped reports whether the holder provably does nothing any more.
func (s Snapshot) stopped(now time.Time, h Candidate, found bool) bool {
	if s.death(now, h).Confirmed {
		return true
	}
	if !found || s.Status.State != Fencing {
		return false
	}
	switch {
	case h.Ended != s.Status.FencingToken:
		return false
	case h.Mode == Exclusive:
		return h.Gated
	case h.Leading:
		return false
	}
	return s.neverStarted(h) ||
		s.demotes(h) && !h.UnlabelledSince.IsZero() && !now.Before(h.UnlabelledSince.Add(s.Lock.FenceGrace))
}

func (s Snapshot) death(now time.Time, h Candidate) Death {
	confirmed := s.Lock.DeadConfirmed != 0 && s.Lock.DeadConfirmed == s.Status.FencingToken
	return Dead(now, h.Body, s.Lock.FenceGrace, confirmed)
}
