package plan

import "time"

// decideUnheld decides for a lock that no candidate of this cluster has.
func (s Snapshot) decideUnheld(now time.Time) Decision {
	if c, yes := s.recorded(now); yes {
		return s.adoptRecord(c)
	}
	if s.Store.Phase == Granted {
		return s.acquired()
	}
	if r, msg := s.mustNotContend(); r != "" {
		return s.standBack(r, msg)
	}
	if d, yes := s.leftBehind(); yes {
		return d
	}
	ranked := s.ranked(now)
	if other, yes := s.otherActive(now, ""); yes {
		if s.heldByOthers() {
			d := s.clearOther(now, other)
			d.Status = s.noted()
			return d
		}
		ranked = append([]Candidate{other}, ranked...)
	}
	if len(ranked) == 0 {
		return s.nobody(now)
	}
	// A candidate that works without the lock asks first: while it is being dealt with, nobody
	// else, here or elsewhere, may have the key.
	return s.contend(ranked).until(now, s.earliestReturn(now))
}

// mustNotContend names why nobody here may ask for the key.
func (s Snapshot) mustNotContend() (Reason, string) {
	switch {
	case s.Lock.Gone:
		return LockDeleted, "the lock is being deleted"
	case s.Lock.Refused != "":
		return Blocked, s.Lock.Refused
	case s.Self.IdentityConflict:
		return IdentityConflict, "two clusters use one identity"
	case !s.Self.Contending:
		return Draining, "this cluster takes no new locks (contend: false)"
	}
	return "", ""
}

// standBack ends any asking; the status says Idle or Waiting according to who would want the lock.
func (s Snapshot) standBack(r Reason, msg string) Decision {
	st := s.noted()
	st.State = Idle
	if r != NoCandidate && r != LockDeleted && len(s.Candidates) > 0 {
		st.State = Waiting
	}
	d := Decision{Status: st, Reason: r, Message: msg}
	switch s.Store.Phase {
	case Asking:
		d.Action = Action{Kind: CallOff}
	case Lost, GivenBack:
		d.Action = Action{Kind: Forget}
	}
	return d
}

// nobody stands back until a candidate comes, or comes back.
func (s Snapshot) nobody(now time.Time) Decision {
	d := s.standBack(NoCandidate, "no candidate wants the lock")
	if at := s.earliestReturn(now); !at.IsZero() {
		d.Status.State, d.Message = Waiting, "every candidate stands back after it gave the lock up"
		d = d.until(now, at)
	}
	for _, c := range s.Candidates {
		if k, yes := s.outdone(c); yes && d.Reason == NoCandidate {
			d.Status.State, d.Message = Waiting, k.Name+" of a newer revision of "+c.Name+"'s workload works under another lock"
		}
	}
	return d
}

// contend asks for the key on behalf of the first candidate, or goes on doing so.
func (s Snapshot) contend(ranked []Candidate) Decision {
	st := s.noted()
	st.State = Waiting
	d := Decision{Status: st, Reason: Contending, Message: "asking for the lock"}
	switch s.Store.Phase {
	case NoEntry:
		d.Action = Action{Kind: Contend, Target: ranked[0]}
	case Lost, GivenBack:
		d.Action = Action{Kind: Forget}
		return s.explained(d).atOnce()
	case Asking:
		if !s.attemptOf(ranked[0]) {
			d.Action = Action{Kind: CallOff}
		}
	}
	return s.explained(d)
}

// heldByOthers reports whether the store's last word was that somebody else has the key.
func (s Snapshot) heldByOthers() bool {
	switch s.Store.Seen.Presence {
	case Away, Beside, Foreign:
		return s.storeAnswered()
	}
	return false
}

// explained names who is in the way.
func (s Snapshot) explained(d Decision) Decision {
	switch {
	case !s.Store.Unanswered.IsZero():
		d.Reason, d.Message = CannotTell, "the store does not answer: nothing new starts"
	case s.Store.Seen.Presence == Away:
		d.Reason, d.Message = HeldElsewhere, "held in cluster "+s.Store.Seen.Holder.Cluster
	case s.Store.Seen.Presence == Beside:
		d.Reason, d.Message = HeldBeside, "held by "+s.Store.Seen.Holder.Name+" for another lock of this cluster"
	case s.Store.Seen.Presence == Foreign:
		d.Reason, d.Message = HeldByForeign, "held by something that is not conch; it is never taken away"
	}
	return d
}

// noted is the status of a lock that is not ours, with who was seen to have it.
func (s Snapshot) noted() Status {
	seen := s.Store.Seen
	st := Status{State: Waiting, HighestSeen: max(s.Status.HighestSeen, s.Status.FencingToken, seen.FencingToken, seen.Highest)}
	switch seen.Presence {
	case Away, Beside:
		st.Holder, st.Token, st.FencingToken = seen.Holder, seen.Token, seen.FencingToken
	}
	return st
}

// attemptOf reports whether the entry asks on behalf of c.
func (s Snapshot) attemptOf(c Candidate) bool {
	id := c.Namespace + "/" + c.Kind + "/" + c.Name + "/" + c.UID + "/"
	prefix := s.Self.Cluster + "/" + id
	return len(s.Store.Owner) > len(prefix) && s.Store.Owner[:len(prefix)] == prefix
}

// acquired writes down a grant. Whoever asked for it may have left by now; that is found out in
// the next pass, which ends the tenure in order.
func (s Snapshot) acquired() Decision {
	st := Status{
		State: Held, Token: s.Store.Token, FencingToken: s.Store.FencingToken,
		HighestSeen: max(s.Status.HighestSeen, s.Store.FencingToken),
		AcquiredAt:  s.Store.GrantedAt, NotBefore: s.Store.NotBefore,
	}
	if s.Store.NotBefore.After(s.Store.GrantedAt) {
		st.State = Settling
	}
	st.Holder = Holder{Cluster: s.Self.Cluster, Owner: s.Store.Owner}
	for _, c := range s.Candidates {
		if s.attemptOf(c) {
			st.Holder = s.holderOf(c, s.Store.Owner)
		}
	}
	if st.Holder.UID == "" {
		st.Holder = s.Store.Asker
		st.Holder.Owner = s.Store.Owner
	}
	return s.write(st, Acquired, "the lock is ours")
}

func (s Snapshot) holderOf(c Candidate, owner string) Holder {
	return Holder{
		Cluster: s.Self.Cluster, Namespace: c.Namespace, Kind: c.Kind, Name: c.Name, UID: c.UID,
		Owner: owner, Node: c.NodeName, BootID: c.BootID, Grace: c.Body.Grace,
	}
}
