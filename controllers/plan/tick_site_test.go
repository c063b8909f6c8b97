package plan_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

type due struct {
	minute int64
	at     time.Time
}

// tickJob is one Job and its process.
type tickJob struct {
	minute            int64
	suspended, gone   bool
	replaced          bool  // deleted for a newer one
	record            int64 // the fencing token of the patch that resumed it
	working, terminal bool
	succeeded         bool
	endsAt, podAt     time.Time
	everWorked        bool
	starts            int
}

// tickEntry is what the keeper of one process knows about one tick.
type tickEntry struct {
	phase    plan.Phase
	grant    tickRecord
	stamping plan.Stage
	tooOld   plan.Reason
	seen     tickRecord
	answered bool
	settle   time.Time
	validTo  time.Time
}

// tickSite is one cluster: its Jobs, its status, and the conch that decides.
type tickSite struct {
	w       *tickWorld
	name    string
	due     []due
	jobs    map[int64]*tickJob
	notes   map[int64]plan.TickNote
	entries map[int64]*tickEntry
	// plain is the Job that holds the plain lock here, and ending why that ends.
	holder   *tickJob
	holderTo time.Time
	ending   plan.Reason
	// stopped is true once the holder's process is known to have ended, and unsaid while its outcome is not recorded.
	stopped, unsaid bool
	// endings are why the tenures before have ended, and dead is true for a cluster that never comes back.
	endings   map[int64]plan.Reason
	dead      bool
	cutUntil  time.Time
	awayUntil time.Time
	healthy   bool
}

func (s *tickSite) crash() {
	s.w.say("conch of %s crashes", s.name)
	s.entries = map[int64]*tickEntry{}
}

func (s *tickSite) reaches() bool { return !s.w.now.Before(s.cutUntil) }

func (s *tickSite) second() {
	s.makeJobs()
	for _, j := range s.jobs {
		s.runProcess(j)
	}
	if s.dead || s.w.now.Before(s.awayUntil) {
		return
	}
	if s.w.policy != plan.Allow {
		s.tendPlain()
	}
	for _, minute := range s.minutes() {
		s.keep(minute)
		s.decide(minute)
	}
}

func (s *tickSite) minutes() []int64 {
	var out []int64
	for minute := range s.jobs {
		out = append(out, minute)
	}
	slices.Sort(out)
	return out
}

// makeJobs is the CronJob controller. Under Forbid it makes no Job beside one that is not over, under
// Replace it deletes that.
func (s *tickSite) makeJobs() {
	for !s.dead && len(s.due) > 0 && !s.w.now.Before(s.due[0].at) {
		minute := s.due[0].minute
		s.due = s.due[1:]
		if s.w.policy == plan.Forbid && s.busy() {
			continue
		}
		if s.w.policy == plan.Replace {
			for _, j := range s.jobs {
				if !j.terminal {
					j.gone, j.working, j.replaced = true, false, true
				}
			}
		}
		s.w.say("%s makes the Job of %d", s.name, minute)
		s.w.made[minute]++
		s.jobs[minute] = &tickJob{minute: minute, suspended: true}
	}
}

func (s *tickSite) busy() bool {
	for _, j := range s.jobs {
		if !j.terminal && !j.gone {
			return true
		}
	}
	return false
}

func (s *tickSite) runProcess(j *tickJob) {
	switch {
	case s.dead || j.suspended || j.gone || j.terminal:
		j.working = false
	case j.working && !s.w.now.Before(j.endsAt):
		j.working, j.terminal, j.succeeded = false, true, !s.w.chance(5)
	case !j.working && !s.w.now.Before(j.podAt):
		j.working, j.everWorked = true, true
	}
}

// resume is the patch that starts the run.
func (s *tickSite) resume(j *tickJob, token int64) {
	w := s.w
	j.suspended, j.record = false, token
	j.podAt, j.endsAt = w.now.Add(time.Duration(w.rnd.IntN(3))*time.Second), w.now.Add(time.Duration(5+w.rnd.IntN(90))*time.Second)
	w.starts[j.minute]++
	j.starts++
	w.say("%s starts %d", s.name, j.minute)
	w.checkStart(j)
}

// tendPlain stands for plan.Decide on the plain lock: ask, hold, lose and give back in the proper order.
func (s *tickSite) tendPlain() {
	w, h := s.w, s.holder
	if h == nil {
		return
	}
	if s.reaches() {
		switch {
		case w.plain == nil, w.plain.owner == s.name:
			w.plain = &plainRecord{owner: s.name, expires: w.now.Add(tickTTL)}
			s.holderTo = w.plain.expires
		default:
			s.ending = plan.LockLost
		}
	}
	if s.ending == "" && !w.now.Before(s.holderTo.Add(-tickFence)) {
		s.ending = plan.BackendLost
	}
	if s.ending == "" && (h.gone || h.terminal) {
		s.ending = plan.Finished
	}
	if s.ending == "" {
		return
	}
	if !h.terminal && !h.gone {
		h.suspended, h.working = true, false
	}
	switch {
	case !s.stopped:
		s.stopped = true
	case s.reaches() && !s.unsaid:
		if w.plain != nil && w.plain.owner == s.name {
			w.plain = nil
		}
		w.say("%s gives the lock back: %s", s.name, s.ending)
		s.endings[h.minute] = s.ending
		s.holder, s.ending, s.stopped = nil, "", false
	}
}

// contend takes the plain lock for a Job that may have it.
func (s *tickSite) contend(j *tickJob) {
	w := s.w
	if s.holder == nil && w.plain == nil && s.reaches() && !w.now.Before(w.settleUntil) {
		w.plain = &plainRecord{owner: s.name, expires: w.now.Add(tickTTL)}
		s.holder, s.holderTo = j, w.plain.expires
		w.say("%s holds the lock for %d", s.name, j.minute)
	}
}

func (s *tickSite) snapshot(j *tickJob) plan.TickSnapshot {
	snap := plan.TickSnapshot{
		Lock: plan.Lock{FenceGrace: time.Second, Margin: time.Second, RenewInterval: tickRenew, TakeoverDelay: tickTakeover, StartDeadline: 5 * time.Minute, RetryElsewhere: s.w.retries},
		Self: plan.Self{Cluster: s.name, Deciding: true, Contending: true},
		Job: plan.Candidate{
			Kind: plan.KindJob, Namespace: "ns", Name: fmt.Sprint(j.minute), UID: fmt.Sprint(j.minute), Mode: plan.Exclusive, Marked: true,
			Gated: j.suspended, Listed: s.notes[j.minute].Outcome == plan.Halting, Quiet: true, Ready: j.working, RecordToken: j.record,
			Body: plan.Body{Exists: !j.gone, Terminal: j.terminal, VanishedAt: now},
		},
		Succeeded: j.succeeded, Sighted: true, Minute: j.minute, Policy: s.w.policy, Note: s.notes[j.minute],
		Tenure: s.tenure(j),
		Store:  s.store(j.minute),
	}
	if j.record > 0 {
		snap.Job.Record = s.name
	}
	if j.working {
		snap.Job.Members = []plan.Member{{Name: "pod", Body: plan.Body{Exists: true, Bound: true}}}
	}
	return snap
}

func (s *tickSite) decide(minute int64) {
	j := s.jobs[minute]
	snap := s.snapshot(j)
	d := plan.DecideTick(s.w.now, snap)
	if s.holder == j {
		s.unsaid = d.Unsaid
	}
	s.effect(j, d)
	if (d.Kind != plan.NoTickAction || d.Note != s.notes[minute]) && s.w.chance(6) && !s.healthy {
		s.crash() // the effect is out, and what was to be noted is not
		return
	}
	if d.Note != s.notes[minute] {
		s.w.say("%s notes %d %s (%s)", s.name, minute, d.Note.Outcome, d.Reason)
		s.notes[minute] = d.Note
		s.w.checkSkip(s, minute)
	}
	if s.w.policy == plan.Allow {
		return
	}
	switch {
	case s.holder != j && !d.Pending && !j.terminal && !j.gone && j.suspended:
		s.contend(j)
	case s.holder == j && d.Withdrawn && s.ending == "" && !s.mayRun(j):
		s.ending = plan.TickElsewhere
	case s.holder == j && !d.Pending && j.suspended && s.ending == "" && !s.w.now.Before(s.w.settleUntil):
		s.resume(j, 1)
	}
}

func (s *tickSite) mayRun(j *tickJob) bool { return j.terminal || j.gone }

func (s *tickSite) effect(j *tickJob, d plan.TickDecision) {
	e := s.entries[j.minute]
	switch d.Kind {
	case plan.Claim:
		s.entries[j.minute] = &tickEntry{phase: plan.Asking}
	case plan.Unclaim, plan.PutBack:
		e.phase = plan.GivingUp
		e.stamping = ""
	case plan.Drop:
		delete(s.entries, j.minute)
	case plan.Stamp:
		e.stamping = d.Stage
	case plan.DeleteJob:
		s.w.say("%s deletes the Job of %d", s.name, j.minute)
		j.gone = true
	case plan.Run:
		switch d.Effect.Kind {
		case plan.Start:
			s.resume(j, d.Status.FencingToken)
		case plan.Suspend:
			j.suspended, j.working = true, false
		default:
		}
	case plan.NoTickAction:
	}
}
