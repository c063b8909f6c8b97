package plan

import (
	"slices"
	"time"
)

// Kin is a pod of a candidate's workload that wants another lock: from before the workload named this one,
// or from after it named the next. No lock keeps the two apart, so their locks' decisions have to.
//
// Each of the two locks says in its status whom it is about to start, and only in a later pass looks at the
// other's status and at the pods, then starts. So at least one of them sees the other: the older revision
// then gives its lock back, and the newer one waits until it has.
type Kin struct {
	Name, UID string
	// Group and Revision are those of a Candidate.
	Group    string
	Revision int64
	// Active is true if it does, or may do, what only a holder may; Holding if it waits, and its own lock's
	// status names it, so that whoever decides may start it at any moment; Settling if it has its lock and may
	// not start yet. None of these: it just waits.
	Active   bool
	Holding  bool
	Settling bool
}

// newer orders kin against a candidate, in the same way from either side.
func (k Kin) newer(c Candidate) bool {
	if k.Revision != c.Revision {
		return k.Revision > c.Revision
	}
	return k.UID > c.UID
}

func (s Snapshot) kinOf(c Candidate, match func(Kin) bool) (Kin, bool) {
	i := slices.IndexFunc(s.Kin, func(k Kin) bool { return k.Group == c.Group && k.UID != c.UID && match(k) })
	if i < 0 || c.Composite() {
		return Kin{}, false
	}
	return s.Kin[i], true
}

// eligible reports whether the candidate could start if it had the lock, and nothing newer of its workload
// works under another one.
func (s Snapshot) eligible(now time.Time, c Candidate) bool {
	_, outdone := s.outdone(c)
	return c.Eligible(now) && !outdone
}

// outdone finds newer kin that works.
func (s Snapshot) outdone(c Candidate) (Kin, bool) {
	return s.kinOf(c, func(k Kin) bool { return k.Active && k.newer(c) })
}

// yields finds newer kin for which a holder that has not started gives its lock back. It does so for one that
// settles, too: that one's fencing token is the lower of the two, and must not be the one that is used last.
func (s Snapshot) yields(h Candidate) (Kin, bool) {
	if !s.unstarted(h) {
		return Kin{}, false
	}
	return s.kinOf(h, func(k Kin) bool { return (k.Active || k.Holding || k.Settling) && k.newer(h) })
}

// rival finds older kin that may be started at any moment. It gives its lock back once it sees this holder.
func (s Snapshot) rival(h Candidate) (Kin, bool) {
	return s.kinOf(h, func(k Kin) bool { return k.Holding && !k.newer(h) })
}

// unwanted reports whether a holder that works keeps others from a lock that its workload does not want any
// more. As long as nobody else waits it works until the newer revision can; but two workloads that swap
// their locks would wait for each other for ever.
func (s Snapshot) unwanted(now time.Time, h Candidate) bool {
	if h.Mode != Exclusive || !h.Active() {
		return false
	}
	_, waits := s.kinOf(h, func(k Kin) bool { return !k.Active && k.newer(h) })
	return waits && (s.Store.Awaited || slices.ContainsFunc(s.Candidates, func(c Candidate) bool {
		return c.Group != h.Group && s.eligible(now, c)
	}))
}
