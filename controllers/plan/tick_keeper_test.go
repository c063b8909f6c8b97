package plan_test

import (
	"fmt"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// owner is who the Job of a minute is to Redis.
func (s *tickSite) owner(minute int64) string { return fmt.Sprintf("%s/%d", s.name, minute) }

func (s *tickSite) token(r tickRecord) string { return fmt.Sprintf("%s#%d", r.owner, r.fence) }

// store is the entry of a tick as DecideTick is shown it.
func (s *tickSite) store(minute int64) plan.TickStore {
	e := s.entries[minute]
	if e == nil {
		return plan.TickStore{}
	}
	st := plan.TickStore{
		Phase: e.phase, Stage: e.grant.stage, Owner: e.grant.owner, FencingToken: e.grant.fence, ValidUntil: e.validTo, NotBefore: e.settle,
		Stamping: e.stamping, TooOld: e.tooOld, Answered: e.answered && s.reaches(), SeenStage: e.seen.stage, Newest: s.w.newest(),
	}
	if e.grant.owner != "" {
		st.Token = s.token(e.grant)
	}
	if e.seen.owner != "" {
		st.Seen = plan.Seen{Presence: plan.Away, Holder: plan.Holder{Cluster: e.seen.owner[:1], Owner: e.seen.owner}}
	} else if e.phase == plan.Lost {
		st.Seen.Presence = plan.Free
	}
	return st
}

// keep is the keeper at work on one tick for a second.
func (s *tickSite) keep(minute int64) {
	note, e := s.notes[minute], s.entries[minute]
	if e == nil && (note.Outcome == plan.Begun || note.Outcome == plan.Halting) {
		e = &tickEntry{phase: plan.Granted, grant: tickRecord{owner: note.Owner, fence: note.FencingToken, stage: plan.StageStarted}}
		s.entries[minute] = e
	}
	if e == nil || !s.reaches() {
		return
	}
	switch e.phase {
	case plan.Asking:
		s.ask(minute, e)
	case plan.Granted:
		s.renew(minute, e)
	case plan.GivingUp:
		s.giveBack(minute, e)
	case plan.NoEntry, plan.Lost, plan.GivenBack:
	}
}

func (s *tickSite) ask(minute int64, e *tickEntry) {
	w, r := s.w, s.w.ticks[minute]
	e.answered = true
	switch {
	case r != nil && r.owner == s.owner(minute):
	case w.forsaken(r) && w.newest() == minute:
		w.take(r, minute)
		r = w.claimFor(s.owner(minute), minute)
	case r != nil:
		e.seen = *r
		return
	case w.begun[minute] && w.retry.taken[minute] == 0, w.policy != plan.Allow && w.newest() > minute:
		e.tooOld = plan.TickSuperseded
		return
	default:
		r = w.claimFor(s.owner(minute), minute)
		if w.now.Before(w.settleUntil) {
			e.settle = w.settleUntil
		}
	}
	e.phase, e.grant, e.seen, e.validTo = plan.Granted, *r, tickRecord{}, w.now.Add(tickTTL)
}

func (s *tickSite) renew(minute int64, e *tickEntry) {
	w, r := s.w, s.w.ticks[minute]
	from, to := e.grant.stage, e.grant.stage
	if e.stamping != "" {
		to = e.stamping
	}
	switch {
	case r != nil && r.owner == e.grant.owner && r.fence == e.grant.fence:
		if w.policy != plan.Allow && r.stage == plan.StageClaimed && to == plan.StageStarted && w.newest() > minute {
			e.tooOld, e.stamping = plan.TickSuperseded, ""
			return
		}
	case from != plan.StageClaimed && (r == nil || r.stage == plan.StageClaimed) && e.grant.fence > w.retry.taken[minute]:
		r = &tickRecord{owner: e.grant.owner, fence: e.grant.fence, stage: from}
		w.retry.lostUntil = w.now.Add(tickTTL)
	default:
		e.phase, e.seen, e.answered = plan.Lost, tickRecord{}, true
		if r != nil {
			e.seen = *r
		}
		e.stamping = ""
		return
	}
	if rank(to) > rank(r.stage) {
		r.stage = to
	}
	r.expires = w.now.Add(tickTTL)
	if r.stage != plan.StageClaimed {
		w.begun[minute], r.expires = true, w.now.Add(48*time.Hour)
		w.retry.over[minute] = rank(r.stage) == 3
	}
	w.ticks[minute] = r
	e.grant, e.stamping, e.validTo, e.answered = *r, "", r.expires, true
}

func (s *tickSite) giveBack(minute int64, e *tickEntry) {
	r := s.w.ticks[minute]
	e.answered = true
	if r != nil && r.owner == s.owner(minute) {
		if r.stage != plan.StageClaimed && s.notes[minute].Outcome != plan.PuttingBack {
			e.phase, e.grant = plan.Granted, *r // refused: it was started
			return
		}
		delete(s.w.ticks, minute)
		delete(s.w.begun, minute)
	}
	e.phase = plan.GivenBack
}

func rank(s plan.Stage) int {
	switch s {
	case plan.StageClaimed:
		return 1
	case plan.StageStarted:
		return 2
	case plan.StageSucceeded, plan.StageFailed:
		return 3
	case plan.Unclaimed:
	}
	return 0
}
