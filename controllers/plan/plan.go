package plan

import "time"

// Decide takes the next step for one lock.
func Decide(now time.Time, s Snapshot) Decision {
	if !s.Self.Deciding {
		return s.wait(NotDeciding, "another replica decides")
	}
	if !s.Status.Ours(s.Self.Cluster) {
		return s.decideUnheld(now)
	}
	switch s.Status.State {
	case Fencing:
		return s.decideFencing(now)
	case Releasing:
		return s.decideReleasing()
	default:
		return s.decideHeld(now)
	}
}

// decideHeld keeps a tenure going: first whether it may go on at all, then the next step of its
// start.
func (s Snapshot) decideHeld(now time.Time) Decision {
	holder, found := s.holder()
	if ending, msg := s.mustEnd(now, holder, found); ending != "" {
		return s.beginFencing(ending, msg)
	}
	if s.stopped(now, holder, found) {
		return s.beginReleasing(HolderGone, "the holder has stopped", false)
	}
	if ending, msg := s.shouldEnd(now, holder, found); ending != "" {
		return s.beginFencing(ending, msg)
	}
	if !found {
		return s.holderVanished(now, holder)
	}
	return s.advance(now, holder).until(now, s.nextLook(now, holder))
}

// advance is the next step of a tenure that goes on.
func (s Snapshot) advance(now time.Time, h Candidate) Decision {
	st := s.Status
	switch {
	case s.Store.Phase == Lost:
		return s.continueTenure(now, h)
	case s.Store.Phase == Granted && s.Store.FencingToken > st.FencingToken:
		st.Token, st.FencingToken = s.Store.Token, s.Store.FencingToken
		st.HighestSeen = max(st.HighestSeen, st.FencingToken)
		return s.write(st, TenureBroken, "the key was gone and was taken again before anybody else came")
	case st.State == Settling:
		return s.settle(now)
	case s.bypassed(h):
		return s.wait(GateBypassed, "the holder runs although conch did not start it; its kind was stopped a moment ago").
			until(now, h.BackOffUntil)
	case !h.Active() || s.withholds(h):
		return s.start(now, h)
	case st.StartedAt.IsZero() && h.begun():
		st.StartedAt = now
		return s.write(s.placed(st, h), Started, "the holder may work")
	}
	if m, yes := s.unrecorded(h); yes {
		return s.do(Action{Kind: Record, Target: h, Member: m}, Running, "the fencing token of the holder is being updated")
	}
	return s.running(now, h)
}

// running finds nothing to do for the holder itself, so it looks at who else works: a candidate
// that got past its gate or took the label while another one holds.
func (s Snapshot) running(now time.Time, h Candidate) Decision {
	d := s.write(s.Status, Running, "the holder has the lock")
	if other, yes := s.otherActive(now, h.UID); yes {
		d = s.clearOther(now, other)
	}
	if h.Body.Deleting && !h.Body.Node.Ready && now.After(h.Body.Deadline) && d.Action.Kind == NoAction {
		d.Reason, d.Message = Unreachable, s.unreachable(h)
	}
	d.Status = s.placed(s.Status, h)
	return d
}

// continueTenure asks for a key that vanished under its holder. A holder that is leaving is worth
// it too: until it has stopped nobody else may start. One that has not started is not.
func (s Snapshot) continueTenure(now time.Time, h Candidate) Decision {
	if s.Self.IdentityConflict {
		return s.wait(IdentityConflict, "the key is gone; nothing is taken while two clusters use one identity")
	}
	return s.do(Action{Kind: Continue, Target: h}, TenureBroken, "the key is gone: asking for it again").
		until(now, now.Add(s.Lock.FenceGrace))
}

// continuable reports whether the lost key may be asked for again: nobody has it, or this very
// holder does, because it was asked for before and whoever did so was gone before writing it down.
func (s Snapshot) continuable() bool {
	seen, st := s.Store.Seen, s.Status
	return seen.Presence == Free || seen.Holder.Owner != "" && seen.Holder.Owner == st.Holder.Owner && seen.FencingToken > st.FencingToken
}

// placed notes where the holder runs, which matters once its node cannot be reached.
func (s Snapshot) placed(st Status, h Candidate) Status {
	st.Holder.Node, st.Holder.BootID = h.NodeName, h.BootID
	if st.Holder.BootID == "" {
		st.Holder.BootID = s.Status.Holder.BootID
	}
	return st
}

func (s Snapshot) settle(now time.Time) Decision {
	if now.Before(s.Status.NotBefore) {
		return s.wait(Contending, "the holder before may still run").until(now, s.Status.NotBefore)
	}
	if !s.mayStart(now) {
		return s.wait(CannotTell, "the lock is ours, but no answer of the store is recent enough to start").
			until(now, now.Add(s.Lock.RenewInterval))
	}
	st := s.Status
	st.State = Held
	return s.write(st, Settled, "the holder before has had its time to stop")
}

// start lifts the gate or sets the label, if the grant is good for it and nobody else is active.
func (s Snapshot) start(now time.Time, h Candidate) Decision {
	switch {
	case s.Self.IdentityConflict:
		return s.wait(IdentityConflict, "nothing starts while two clusters use one identity")
	case h.Body.leaving():
		return s.wait(HolderGone, "the holder is stopping")
	case now.Before(s.Status.NotBefore):
		return s.wait(Contending, "the holder before may still run").until(now, s.Status.NotBefore)
	case !s.mayStart(now):
		return s.wait(CannotTell, "no answer of the store is recent enough to start").
			until(now, now.Add(s.Lock.RenewInterval))
	}
	if other, yes := s.otherActive(now, h.UID); yes {
		return s.clearOther(now, other)
	}
	if k, yes := s.rival(h); yes {
		return s.wait(OthersActive, k.Name+" of an older revision gives another lock back").until(now, now.Add(strayLook))
	}
	if h.Composite() {
		return s.startComposite(now, h)
	}
	return s.do(Action{Kind: Start, Target: h}, Acquired, "the holder is being started")
}

// mayStart reports whether the store's last answer leaves a new holder time to work and to stop.
func (s Snapshot) mayStart(now time.Time) bool {
	return s.Store.Phase == Granted && s.Store.Token == s.Status.Token &&
		!s.Store.ValidUntil.IsZero() && now.Before(s.fenceAt())
}

// fenceAt is when a holder must be told to stop for want of a renewal.
func (s Snapshot) fenceAt() time.Time {
	if s.Store.ValidUntil.IsZero() {
		return s.Store.KeptSince.Add(s.Lock.FenceGrace)
	}
	return s.Store.ValidUntil.Add(-s.Lock.FenceGrace - s.Lock.Margin)
}

func (s Snapshot) beginFencing(r Reason, msg string) Decision {
	st := s.Status
	st.State, st.Ending = Fencing, r
	return s.write(st, r, msg)
}

func (s Snapshot) beginReleasing(r Reason, msg string, unclean bool) Decision {
	st := s.Status
	st.State, st.Unclean = Releasing, unclean
	if st.Ending == "" {
		st.Ending = r
	}
	return s.write(st, r, msg)
}
