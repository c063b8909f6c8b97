package plan

import "time"

// Kinds of candidates that are not single pods.
const (
	KindPod         = "Pod"
	KindJob         = "Job"
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
)

// orphanSettle is how long after the end of a Job its controller may still act on what it knew before.
const orphanSettle = time.Second

// Member is a pod of a Job or of an active-passive workload.
type Member struct {
	Namespace, Name, UID string
	// Gated is true while the scheduling gate is on. The pods of a Job have none.
	Gated bool
	// Record, RecordToken and Ended are what stands on the pod, as on a candidate.
	Record      string
	RecordToken int64
	Ended       int64
	NodeName    string
	Body        Body
}

// mayWork reports whether the member may be working. Only an orderly end says that it does not.
func (m Member) mayWork() bool {
	return !m.Gated && !(m.Body.leaving() && m.Body.Stopped && !m.Body.Collected) && (m.Body.Exists || m.Body.Bound || !m.Body.Final)
}

// waits reports whether the member waits behind its gate.
func (m Member) waits() bool { return m.Gated && m.Body.Exists && !m.Body.leaving() }

// writtenOff is as for a candidate: nobody saw the member stop, and nobody waits for it any more.
func (m Member) writtenOff() bool {
	return m.Body.leaving() && m.Ended != 0 && m.Ended >= m.RecordToken && !m.Gated
}

// Composite reports whether the candidate works through pods that come and go: a Job, or an
// active-passive workload.
func (c Candidate) Composite() bool { return c.isJob() || c.Mode == ActivePassive }

func (c Candidate) isJob() bool { return c.Kind == KindJob }

// resumed reports whether the Job's controller may make pods.
func (c Candidate) resumed() bool {
	return c.isJob() && c.Body.Exists && !c.Gated && !c.Body.leaving()
}

// Bypassed reports whether a Job was resumed by another hand than conch's, for all that it shows itself.
func (c Candidate) Bypassed() bool {
	return c.resumed() && !c.Overridden && (c.Record == "" || c.Ended >= c.RecordToken)
}

// withheld is the first member that waits and may be let go under a fencing token.
func (c Candidate) withheld(token int64) (Member, bool) {
	for _, m := range c.Members {
		if c.Mode == ActivePassive && m.waits() && (token == 0 || m.Ended < token) {
			return m, true
		}
	}
	return Member{}, false
}

// works reports whether a composite candidate has, or may yet make, a pod that works.
func (c Candidate) works() bool {
	if c.resumed() {
		return true
	}
	for _, m := range c.Members {
		if m.mayWork() {
			return true
		}
	}
	return false
}

// begun reports whether the candidate counts as started: a pod by its gate or label, a Job once it is
// resumed, an active-passive workload once one pod is ready.
func (c Candidate) begun() bool { return c.Mode != ActivePassive || c.Ready }

// withholds reports whether an active-passive holder has pods that wait and may be let go.
func (s Snapshot) withholds(h Candidate) bool {
	_, yes := h.withheld(s.Status.FencingToken)
	return yes
}

// startComposite resumes a Job, or lets the first pod go that waits.
func (s Snapshot) startComposite(now time.Time, h Candidate) Decision {
	m, waits := h.withheld(s.Status.FencingToken)
	switch {
	case h.TickPending:
		return s.wait(Contending, "the scheduled run has not been claimed")
	case h.isJob() && h.Busy:
		return s.wait(Acquired, "the Job's controller still counts pods of the run before").until(now, now.Add(memberLook))
	case h.isJob() && h.Stale:
		return s.do(Action{Kind: Reset, Target: h}, Acquired, "the Job's start time is from the run before")
	case h.isJob():
		return s.do(Action{Kind: Start, Target: h}, Acquired, "the Job is being resumed")
	case !waits:
		return s.wait(Acquired, "the workload has no pods yet").until(now, now.Add(memberLook))
	}
	return s.do(Action{Kind: Start, Target: h, Member: m}, Acquired, "a pod of the holder is being started")
}

// unrecorded is what of the holder does not bear the present fencing token: the candidate itself where
// the member is zero, else one of its pods.
func (s Snapshot) unrecorded(h Candidate) (Member, bool) {
	st := s.Status
	if h.Mode != ActivePassive && (h.RecordToken != st.FencingToken || h.Record != st.Holder.Owner) {
		return Member{}, true
	}
	for _, m := range h.Members {
		if m.mayWork() && !m.Body.leaving() && (m.RecordToken != st.FencingToken || m.Record != st.Holder.Owner) {
			return m, true
		}
	}
	return Member{}, false
}

// memberBypassed reports whether a pod of an active-passive workload got past its gate by another hand
// than conch's before the tenure had begun.
func (s Snapshot) memberBypassed(h Candidate) bool {
	if !s.Status.StartedAt.IsZero() || h.Overridden {
		return false
	}
	for _, m := range h.Members {
		if m.mayWork() && m.Record != s.Status.Holder.Owner {
			return true
		}
	}
	return false
}

// allWrittenOff reports whether every member has shown its end or is written off.
func (c Candidate) allWrittenOff() bool {
	for _, m := range c.Members {
		if m.mayWork() && m.Body.Exists && !m.writtenOff() {
			return false
		}
	}
	return !c.resumed()
}

// unspoiled is what a start that was decided under token could still reach, and does not conflict yet:
// the suspended Job itself, or a gated member.
func (c Candidate) unspoiled(token int64) (Member, bool) {
	if c.isJob() {
		return Member{}, c.Body.Exists && c.Gated && !c.Body.leaving() && c.Ended != token
	}
	for _, m := range c.Members {
		if m.waits() && m.Ended != token {
			return m, true
		}
	}
	return Member{}, false
}

// death judges a candidate. A composite one is dead if, by a list from the API server itself, all its
// pods are, and whoever makes them has said that it makes no more.
func (c Candidate) death(now time.Time, fenceGrace time.Duration, confirmed bool) Death {
	switch {
	case !c.Composite():
		return Dead(now, c.Body, fenceGrace, confirmed)
	case confirmed:
		return Death{Confirmed: true, Presumed: true, Why: "an operator confirmed it"}
	case c.resumed():
		return Death{Why: "it has not been suspended"}
	case !c.Listed:
		return Death{Why: "its pods have not been looked for"}
	case !c.Quiet:
		return Death{Why: "its controller has not taken note of the suspension"}
	case c.isJob() && !c.Body.Exists && now.Before(c.Body.VanishedAt.Add(orphanSettle)):
		return Death{Why: "it is gone since a moment ago", After: c.Body.VanishedAt.Add(orphanSettle)}
	}
	all := Death{Confirmed: true, Why: "all its pods have stopped"}
	for _, m := range c.Members {
		if m.Gated {
			continue
		}
		d := Dead(now, m.Body, fenceGrace, false)
		if !d.Confirmed && !m.writtenOff() {
			return Death{Why: m.Name + ": " + d.Why, After: d.After}
		}
		all.Presumed = all.Presumed || d.Presumed || !d.Confirmed
	}
	return all
}
