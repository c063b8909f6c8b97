package plan

import (
	"cmp"
	"slices"
	"time"
)

// holder finds the status's holder among the candidates. Found is false if its object is gone;
// the candidate then still carries what is known of its end.
func (s Snapshot) holder() (Candidate, bool) {
	for _, c := range s.Candidates {
		if c.UID == s.Status.Holder.UID {
			return c, c.Body.Exists
		}
	}
	h := s.Status.Holder
	return Candidate{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name, UID: h.UID, Body: Body{Grace: h.Grace}}, false
}

// ranked are the eligible candidates, the one to serve first in front: the newest revision within
// one owner, then the oldest; between owners the oldest.
func (s Snapshot) ranked(now time.Time) []Candidate {
	newest := map[string]int64{}
	for _, c := range s.Candidates {
		if s.eligible(now, c) {
			newest[c.Group] = max(newest[c.Group], c.Revision)
		}
	}
	var out []Candidate
	for _, c := range s.Candidates {
		if s.eligible(now, c) && c.Revision == newest[c.Group] {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	return out
}

func (s Snapshot) othersWait(now time.Time, uid string) bool {
	return slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.UID != uid && s.eligible(now, c) })
}

// otherActive finds a candidate that may be working although it is not the holder.
func (s Snapshot) otherActive(now time.Time, uid string) (Candidate, bool) {
	for _, c := range s.Candidates {
		if c.UID != uid && c.Active() && !c.writtenOff() && !c.death(now, s.Lock.FenceGrace, false).Confirmed {
			return c, true
		}
	}
	return Candidate{}, false
}

// earliestReturn is when the first candidate that backs off may contend again.
func (s Snapshot) earliestReturn(now time.Time) time.Time {
	var at time.Time
	for _, c := range s.Candidates {
		if c.BackOffUntil.After(now) && (at.IsZero() || c.BackOffUntil.Before(at)) {
			at = c.BackOffUntil
		}
	}
	return at
}
