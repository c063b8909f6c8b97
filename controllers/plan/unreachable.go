package plan

import "time"

// holderVanished waits for proof that a missing holder has stopped, or gives up on it if the
// operator chose to.
func (s Snapshot) holderVanished(now time.Time, h Candidate) Decision {
	if s.givesUp(now, h, false) {
		return s.abandon()
	}
	death := s.death(now, h)
	d := s.wait(Unreachable, "the holder cannot be confirmed dead: "+death.Why)
	return d.until(now, death.After).until(now, s.abandonAt(h, false))
}

// abandonAt is when a holder that cannot be reached is given up, zero for never. A node that is
// well will tell by itself, so it is waited for.
func (s Snapshot) abandonAt(h Candidate, found bool) time.Time {
	if h.Composite() {
		return s.membersAbandonedAt(h)
	}
	h.Body.Exists = found
	return s.bodyAbandonedAt(h.Body)
}

func (s Snapshot) bodyAbandonedAt(b Body) time.Time {
	patience := s.Lock.FenceGrace + s.Lock.TakeoverDelay
	switch {
	case !s.Lock.ReleaseLost || b.Node.Ready:
		return time.Time{}
	case !b.Exists && !b.VanishedAt.IsZero():
		return b.VanishedAt.Add(b.Grace + patience)
	case b.Exists && b.Deleting:
		return b.Deadline.Add(patience)
	}
	return time.Time{}
}

func (s Snapshot) givesUp(now time.Time, h Candidate, found bool) bool {
	at := s.abandonAt(h, found)
	return !at.IsZero() && !now.Before(at)
}

func (s Snapshot) abandon() Decision {
	return s.beginReleasing(Unreachable, "given back without confirmed death, as onUnreachable: Release asks", true)
}

// writeOff prepares to end the tenure of a holder whose object stands although somebody vouches for
// its death, or nobody will wait for it. The object is deleted, so that a node that comes back
// finishes it off, and marked, so that it is not taken for a holder again: its record would say so.
func (s Snapshot) writeOff(h Candidate) (Decision, bool) {
	r, msg := s.Status.Ending, "the holder is being written off"
	switch {
	case h.writtenOff() && h.Ended == s.Status.FencingToken:
		return Decision{}, false
	case !h.Body.leaving():
		return s.do(Action{Kind: Stop, Target: h, Grace: s.lostGrace(h.Body)}, r, msg), true
	case h.RecordToken != s.Status.FencingToken:
		return s.do(Action{Kind: Record, Target: h}, r, msg), true
	case h.Mode == Leader:
		return s.do(Action{Kind: Unlabel, Target: h}, r, msg), true
	}
	return s.do(Action{Kind: Spoil, Target: h}, r, msg), true
}

// unreachable says where an operator has to look.
func (s Snapshot) unreachable(h Candidate) string {
	node := h.NodeName
	if node == "" {
		node = s.Status.Holder.Node
	}
	return h.Name + " on node " + node + " cannot be confirmed dead: the node is not ready"
}
