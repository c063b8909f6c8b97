package plan

import "time"

// strayLook is how often pods are looked at that no watch of this lock tells of.
const strayLook = 250 * time.Millisecond

// retire ends a pod of the holder's own workload that does not want this lock, in good order, as an older revision is: the
// holder has the lock and waits for it. Deleting such a pod would only bring another one that waits for
// nothing, so its revision is taken out of service. Where that cannot be done, or the pod is from a
// newer revision, whose mark somebody took off, nothing is lifted beside it.
func (s Snapshot) retire(now time.Time, c Candidate) Decision {
	look := now.Add(strayLook)
	switch {
	case c.Body.leaving():
		return s.wait(OthersActive, c.Name+", which does not want this lock, is still stopping").until(now, look)
	case c.Replaceable:
		d := s.do(Action{Kind: Retire, Target: c}, HandOver, "the revision of "+c.Name+", which does not want this lock, hands over")
		return d.until(now, look)
	}
	return s.wait(OthersActive, c.Name+" of the same workload runs and does not want this lock, and nothing starts beside it: delete it, "+
		"or scale the workload to 0 and back").until(now, look)
}
