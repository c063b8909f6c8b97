package plan

import "time"

// strayLook is how often pods are looked at that no watch of this lock tells of.
const strayLook = 250 * time.Millisecond

// retire ends a pod of the holder's own workload that works and does not want this lock, in good order, as
// an older revision is: the holder has the lock and waits for it. Its revision is taken out of service: an
// unmarked pod that is deleted would only bring another one that waits for nothing. One that is marked
// brings one that waits, so it may be deleted where its revision has to stay, as a StatefulSet's does.
// Nothing is lifted beside what is neither, or is from a newer revision whose mark somebody took off.
func (s Snapshot) retire(now time.Time, c Candidate) Decision {
	look := now.Add(strayLook)
	h, _ := s.holder()
	what := "the revision of " + c.Name + ", which does not want this lock, hands over"
	switch {
	case c.Body.leaving():
		return s.wait(OthersActive, c.Name+", which does not want this lock, is still stopping").until(now, look)
	case c.Replaceable:
		return s.do(Action{Kind: Retire, Target: c}, HandOver, what).until(now, look)
	case c.Marked && c.Revision < h.Revision:
		return s.do(Action{Kind: Stop, Target: c, Grace: c.Body.Grace}, HandOver, what).until(now, look)
	}
	return s.wait(OthersActive, c.Name+" of the same workload runs and does not want this lock, and nothing starts beside it: delete it, "+
		"or scale the workload to 0 and back").until(now, look)
}
