package plan

import "time"

// memberLook is how often the pods of a composite holder that is being stopped are looked for; those
// without a mark are shown by no watch. Where nothing can be done, they are looked for less often.
const (
	memberLook    = time.Second
	unreachedLook = 5 * time.Second
)

// fenceComposite stops a Job or an active-passive workload: first what makes pods, then the pods, then
// whatever a late start could still reach. It waits for proof as for a single pod.
func (s Snapshot) fenceComposite(now time.Time, h Candidate) Decision {
	r := s.Status.Ending
	switch {
	case s.compositeStopped(now, h):
		return s.beginReleasing(r, "the holder has stopped", false)
	case h.resumed() && h.Stale:
		return s.do(Action{Kind: Reset, Target: h}, r, "the Job's status is from before it was resumed")
	case h.resumed():
		return s.do(Action{Kind: Suspend, Target: h}, r, "the Job is being suspended")
	}
	given := s.givesUp(now, h, h.Body.Exists)
	for _, m := range h.Members {
		if a := s.endMember(now, h, m, given); a.Kind != NoAction {
			return s.do(a, r, "the holder's pods are being stopped")
		}
	}
	if given && h.allWrittenOff() {
		return s.abandon()
	}
	if m, yes := h.unspoiled(s.Status.FencingToken); yes && (!h.isJob() || s.death(now, h).Confirmed) {
		return s.do(Action{Kind: Spoil, Target: h, Member: m}, r, "what has not started is kept from starting late")
	}
	return s.awaitMembers(now, h)
}

// compositeStopped reports whether the holder provably does nothing any more, and no late start could
// make it. It is asked under Fencing only, so that the list of pods is younger than that status.
func (s Snapshot) compositeStopped(now time.Time, h Candidate) bool {
	death := s.death(now, h)
	_, open := h.unspoiled(s.Status.FencingToken)
	return s.Status.State == Fencing && death.Confirmed && !open && (!death.Presumed || h.allWrittenOff())
}

// endMember is the next effect on one pod of the holder, if there is one.
func (s Snapshot) endMember(now time.Time, h Candidate, m Member, given bool) Action {
	death := Dead(now, m.Body, s.Lock.FenceGrace, s.deathConfirmed())
	grace := s.stopGrace(now, m.Body)
	switch {
	case !m.Body.Exists, !m.mayWork(), m.writtenOff() && m.Ended == s.Status.FencingToken:
		return Action{}
	case !m.Body.Deleting, m.Body.Deadline.Sub(now) > grace+time.Second:
		return Action{Kind: Stop, Target: h, Member: m, Grace: grace}
	case given, death.Confirmed && death.Presumed:
		return Action{Kind: Spoil, Target: h, Member: m}
	}
	return Action{}
}

// awaitMembers waits for the pods that have been told to stop.
func (s Snapshot) awaitMembers(now time.Time, h Candidate) Decision {
	death, each := s.death(now, h), memberLook
	d := s.wait(s.Status.Ending, "the holder is being stopped: "+death.Why)
	for _, m := range h.Members {
		if m.mayWork() && !m.Body.Node.Ready && m.Body.Deleting && now.After(m.Body.Deadline) && !m.writtenOff() {
			d, each = s.wait(Unreachable, unreachableMember(m)), unreachedLook
		}
		if m.Body.Deleting {
			d = d.until(now, m.Body.Deadline)
		}
	}
	return d.until(now, now.Add(each)).until(now, death.After).until(now, s.abandonAt(h, h.Body.Exists)).until(now, s.touchEnds())
}

func unreachableMember(m Member) string {
	return m.Name + " on node " + m.NodeName + " cannot be confirmed dead: the node is not ready"
}

// membersAbandonedAt is when the last pod of a composite holder that cannot be reached is given up;
// zero while one of them may still be.
func (s Snapshot) membersAbandonedAt(h Candidate) time.Time {
	var at time.Time
	for _, m := range h.Members {
		if !m.mayWork() || m.writtenOff() {
			continue
		}
		t := s.bodyAbandonedAt(m.Body)
		if t.IsZero() {
			return time.Time{}
		}
		at = later(at, t)
	}
	return at
}

// compositeEnds names why a Job or an active-passive workload holds no longer by its own doing.
func (s Snapshot) compositeEnds(now time.Time, h Candidate) (Reason, string) {
	switch {
	case !h.Body.Exists:
		return HolderGone, "the holder was deleted; what is left of its pods is stopped"
	case h.Body.Terminal:
		return Finished, "the Job has ended"
	case h.Body.Deleting:
		return HolderGone, "the holder is being deleted"
	case h.Done:
		return HolderGone, "the workload asks for no pods of this kind"
	case h.isJob() && h.Gated && !s.Status.StartedAt.IsZero():
		return HolderGone, "the Job was suspended by another hand"
	case s.death(now, h).Confirmed:
		return HolderGone, "the holder's death was confirmed"
	}
	return "", ""
}

// clearComposite stops a Job or an active-passive workload that may be working and holds nothing.
func (s Snapshot) clearComposite(now time.Time, c Candidate) Decision {
	switch {
	case s.Self.IdentityConflict || !s.storeAnswered() || s.recordNames(c):
		return s.wait(OthersActive, c.Name+" runs without holding the lock; nothing starts beside it")
	case !c.Marked:
		return s.wait(OthersActive, c.Name+" runs without holding the lock and is not marked; nothing starts beside it").until(now, now.Add(memberLook))
	case now.Before(c.BackOffUntil) && c.resumed():
		return s.wait(OthersActive, c.Name+" runs without holding the lock; it was stopped a moment ago").until(now, c.BackOffUntil)
	case c.resumed() && c.Stale:
		return s.do(Action{Kind: Reset, Target: c}, GateBypassed, c.Name+" was resumed without holding the lock")
	case c.resumed():
		return s.do(Action{Kind: Suspend, Target: c}, GateBypassed, c.Name+" was resumed without holding the lock")
	}
	for _, m := range c.Members {
		if m.mayWork() && m.Body.Exists && !m.Body.Deleting {
			return s.do(Action{Kind: Stop, Target: c, Member: m, Grace: m.Body.Grace}, GateBypassed, m.Name+" runs without holding the lock")
		}
	}
	death := c.death(now, s.Lock.FenceGrace, false)
	return s.wait(OthersActive, c.Name+" is still stopping: "+death.Why).until(now, now.Add(memberLook)).until(now, death.After)
}
