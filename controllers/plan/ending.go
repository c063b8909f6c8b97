package plan

import (
	"fmt"
	"slices"
	"time"
)

// notReadyPatience is how long a leader may be not ready while another candidate is.
const notReadyPatience = 15 * time.Second

// unmarkedLook is how often a holder is looked at whose mark is gone, since no watch tells of it.
const unmarkedLook = 10 * time.Second

// mustEnd names why the tenure cannot go on, whatever the holder does.
func (s Snapshot) mustEnd(now time.Time, h Candidate, found bool) (Reason, string) {
	switch {
	case s.taken():
		return LockLost, "the key is no longer ours"
	case s.Store.Phase == GivenBack:
		return LockLost, "the key was given back under its holder"
	case s.Store.Phase == Lost && (!found || !h.Active()):
		return LockLost, "the key is gone, and its holder had not started"
	case s.outOfTouch(now):
		return BackendLost, "the store has not confirmed the lock in time"
	}
	return "", ""
}

// taken reports whether the store named somebody else in the holder's place, or refused to continue
// its tenure.
func (s Snapshot) taken() bool {
	switch s.Store.Phase {
	case Lost:
		return s.Store.Continuing || !s.continuable()
	case Asking:
		return s.Store.Continuing && s.Store.Seen.Presence != Unseen && s.Store.Seen.Presence != Free
	}
	return false
}

// outOfTouch reports whether the holder must stop because nobody knows whether the key is still
// ours. A lock that holds on loss goes on: inside one cluster gates and confirmed death exclude.
// A candidate that has not started can wait at no risk, but a grant that is gone is worth nothing.
func (s Snapshot) outOfTouch(now time.Time) bool {
	if s.Lock.HoldOnLoss || s.Store.Phase == GivingUp || s.Store.Phase == GivenBack {
		return false
	}
	return (!s.Store.Unanswered.IsZero() || s.Store.Phase == NoEntry || s.Store.Continuing) &&
		s.Store.Phase != Lost && !now.Before(s.fenceAt())
}

// shouldEnd names why a healthy tenure ought to end. A holder that is leaving already is left to it.
func (s Snapshot) shouldEnd(now time.Time, h Candidate, found bool) (Reason, string) {
	lock, st := s.Lock, s.Status
	switch {
	case lock.Gone:
		return LockDeleted, "the lock is being deleted"
	case lock.ReleaseAsked != 0 && lock.ReleaseAsked == st.FencingToken:
		return ReleaseRequested, "an operator asked for the release of this fencing token"
	case h.Composite():
		if r, msg := s.compositeEnds(now, h); r != "" {
			return r, msg
		}
		return s.oughtToEnd(now, h)
	case !found:
		return "", ""
	case s.lostItsBody(now, h):
		return HolderGone, "the holder has not stopped in order, and will not come back"
	case s.givesUp(now, h, found):
		return Unreachable, s.unreachable(h)
	case h.Body.Deleting:
		return "", ""
	}
	return s.oughtToEnd(now, h)
}

// oughtToEnd names why a holder that is well must make way.
func (s Snapshot) oughtToEnd(now time.Time, h Candidate) (Reason, string) {
	lock, st := s.Lock, s.Status
	if k, yes := s.yields(h); yes {
		return LockChanged, k.Name + " of a newer revision has another lock"
	}
	switch {
	case h.TickReplaced:
		return HandOver, "a newer scheduled run waits in another cluster"
	case lock.Refused != "" && !h.Active():
		return Blocked, lock.Refused
	case h.TickWithdrawn:
		return TickElsewhere, "its scheduled run is not, or no longer, this cluster's"
	case !s.Self.Contending && s.Store.Awaited:
		return Draining, "this cluster hands its locks over (contend: false), and another one waits"
	case s.bypassed(h) && !now.Before(h.BackOffUntil):
		return GateBypassed, "the holder runs although conch did not start it"
	case lock.MaxHold > 0 && !now.Before(st.AcquiredAt.Add(lock.MaxHold)):
		return MaxHoldReached, fmt.Sprintf("held for %s", lock.MaxHold)
	case s.startOverdue(now, h):
		return StartDeadline, fmt.Sprintf("not running for %s while another candidate waits", lock.StartDeadline)
	case h.Mode == Leader && s.leaderUnfit(now, h):
		return LeaderNotReady, fmt.Sprintf("not ready for %s while another candidate is", notReadyPatience)
	case s.newerWaits(now, h):
		return HandOver, "a newer revision waits"
	case s.unwanted(now, h):
		return LockChanged, "its workload wants another lock by now, and others wait for this one"
	}
	return "", ""
}

// bypassed reports whether an exclusive holder lost its gate by another hand than conch's. A start
// of conch's own writes the record in the same patch.
func (s Snapshot) bypassed(h Candidate) bool {
	if h.Mode == ActivePassive {
		return s.memberBypassed(h)
	}
	return h.Mode == Exclusive && h.Active() && h.Marked && !h.Overridden &&
		s.Status.StartedAt.IsZero() && h.Record != s.Status.Holder.Owner
}

// lostItsBody reports whether there is nothing left to wait for, though the holder has not shown its
// end: it leaves before it started, its pod ended without a word of its containers, as when the
// kubelet refuses it, or somebody vouches for its death while the object stands.
func (s Snapshot) lostItsBody(now time.Time, h Candidate) bool {
	switch {
	case h.Body.leaving() && s.unstarted(h):
		return true
	case h.Body.Terminal && !h.Body.Deleting:
		return true
	}
	return h.Body.Node.Gone || h.Body.Node.OutOfService || s.death(now, h).Confirmed
}

func (s Snapshot) startOverdue(now time.Time, h Candidate) bool {
	return !h.Ready && (s.Store.Awaited || s.othersWait(now, h.UID)) && !now.Before(s.notRunningSince(h).Add(s.Lock.StartDeadline))
}

// notRunningSince counts from the start of the tenure at the earliest.
func (s Snapshot) notRunningSince(h Candidate) time.Time {
	since := s.Status.AcquiredAt
	for _, t := range []time.Time{s.Status.NotBefore, h.ReadySince} {
		if t.After(since) {
			since = t
		}
	}
	return since
}

func (s Snapshot) leaderUnfit(now time.Time, h Candidate) bool {
	return !h.Ready && s.othersWait(now, h.UID) && !now.Before(h.ReadySince.Add(notReadyPatience))
}

// newerWaits reports whether a newer revision of the holder's workload waits for it. Among leaders it
// never does: a newer one is up already, and its rollout ends the older ones by itself. A revision
// that could not start before does not disturb one that works a second time.
func (s Snapshot) newerWaits(now time.Time, h Candidate) bool {
	return slices.ContainsFunc(s.Candidates, func(c Candidate) bool {
		bothLead := h.Mode == Leader && c.Mode == Leader
		return c.UID != h.UID && c.Group == h.Group && c.Revision > h.Revision && !bothLead && !c.GaveUp && s.eligible(now, c)
	})
}

// nextLook is when a tenure that goes on must be looked at again.
func (s Snapshot) nextLook(now time.Time, h Candidate) time.Time {
	var at time.Time
	soonest := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	soonest(s.touchEnds())
	soonest(s.abandonAt(h, true))
	if h.Body.Deleting {
		soonest(h.Body.Deadline) // from then on it is reported if its node is not ready
	}
	if s.Lock.MaxHold > 0 {
		soonest(s.Status.AcquiredAt.Add(s.Lock.MaxHold))
	}
	if !h.Marked {
		soonest(now.Add(unmarkedLook))
	}
	if !h.Ready {
		soonest(s.notRunningSince(h).Add(s.Lock.StartDeadline))
		if h.Mode == Leader {
			soonest(h.ReadySince.Add(notReadyPatience))
		}
	}
	return at
}

// touchEnds is when the holder must be hurried unless the store answers before; zero while it does.
func (s Snapshot) touchEnds() time.Time {
	if s.Lock.HoldOnLoss || s.Store.Phase == Lost || s.Store.Phase == Granted && s.Store.Unanswered.IsZero() {
		return time.Time{}
	}
	return s.fenceAt()
}
