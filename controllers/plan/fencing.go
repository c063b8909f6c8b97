package plan

import "time"

// decideFencing stops the holder and waits for proof. It never leads back to Held.
func (s Snapshot) decideFencing(now time.Time) Decision {
	h, found := s.holder()
	if h.Composite() {
		return s.fenceComposite(now, h)
	}
	if s.stopped(now, h, found) {
		return s.beginReleasing(s.Status.Ending, "the holder has stopped", false)
	}
	if !found {
		return s.holderVanished(now, h)
	}
	presumed, lost := s.death(now, h).Confirmed, s.givesUp(now, h, found)
	if (presumed || lost) && !s.unstarted(h) {
		if d, yes := s.writeOff(h); yes {
			return d
		}
		return s.abandon()
	}
	return s.stop(now, h)
}

// stop takes the next step to end a holder that still exists.
func (s Snapshot) stop(now time.Time, h Candidate) Decision {
	r := s.Status.Ending
	switch {
	case s.unstarted(h):
		return s.do(Action{Kind: Spoil, Target: h}, r, "the candidate had not started")
	case s.demotes(h) && (h.Leading || h.Ended != s.Status.FencingToken):
		return s.do(Action{Kind: Unlabel, Target: h}, r, "the leader is being demoted")
	case s.demotes(h):
		return s.wait(r, "the former leader has its time to read that it is none").
			until(now, h.UnlabelledSince.Add(s.Lock.FenceGrace))
	}
	grace := s.stopGrace(now, h.Body)
	if !h.Body.Deleting || h.Body.Deadline.Sub(now) > grace+time.Second {
		return s.do(Action{Kind: Stop, Target: h, Grace: grace}, r, "the holder is being stopped")
	}
	d := s.wait(r, "the holder is being stopped")
	if !h.Body.Node.Ready && now.After(h.Body.Deadline) {
		d = s.wait(Unreachable, s.unreachable(h))
	}
	return d.until(now, h.Body.Deadline).until(now, s.abandonAt(h, true)).until(now, s.touchEnds())
}

// unstarted reports whether the holder never got to work in this tenure. A gate that is off cannot
// be put back on; a label can go and come.
func (s Snapshot) unstarted(h Candidate) bool {
	if h.Mode == Exclusive {
		return h.Gated
	}
	return !h.Leading && s.Status.StartedAt.IsZero() && h.RecordToken != s.Status.FencingToken
}

// demotes reports whether this tenure ends by taking the label off, the process left alone.
func (s Snapshot) demotes(h Candidate) bool {
	return h.Mode == Leader && s.Lock.Demote && !h.Body.Deleting
}

// stopGrace is how long the holder gets. A lock that is lost or about to be has no time to give,
// even where the stop began for another reason; a hand-over in good order leaves the pod its own.
func (s Snapshot) stopGrace(now time.Time, b Body) time.Duration {
	ending := s.Status.Ending
	if ending == LockLost || ending == BackendLost || s.Store.Phase == Lost || s.outOfTouch(now) {
		return s.lostGrace(b)
	}
	return b.Grace
}

func (s Snapshot) lostGrace(b Body) time.Duration {
	return max(time.Second, min(b.Grace, s.Lock.FenceGrace)).Truncate(time.Second)
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
	if h, _ := s.holder(); h.TickUnsaid {
		return s.wait(s.Status.Ending, "the outcome of the scheduled run is being recorded before the key is given back")
	}
	return s.do(Action{Kind: Release, Unclean: s.Status.Unclean}, s.Status.Ending, "the key is being given back")
}

// stopped reports whether the holder provably does nothing any more, and nothing about its object
// could make anybody think otherwise.
func (s Snapshot) stopped(now time.Time, h Candidate, found bool) bool {
	if h.Composite() {
		return s.compositeStopped(now, h)
	}
	if death := s.death(now, h); death.Confirmed && (!found || !death.Presumed || s.Status.State == Fencing && h.writtenOff()) {
		return true
	}
	if !found || s.Status.State != Fencing || h.Ended != s.Status.FencingToken {
		return false
	}
	return s.unstarted(h) ||
		s.demotes(h) && !h.Leading && !h.UnlabelledSince.IsZero() && !now.Before(h.UnlabelledSince.Add(s.Lock.FenceGrace))
}

func (s Snapshot) death(now time.Time, h Candidate) Death {
	return h.death(now, s.Lock.FenceGrace, s.deathConfirmed())
}

// deathConfirmed reports whether an operator vouches for the death of the present holder.
func (s Snapshot) deathConfirmed() bool {
	return s.Lock.DeadConfirmed != 0 && s.Lock.DeadConfirmed == s.Status.FencingToken
}
