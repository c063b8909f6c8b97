package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// job is a Job as the API server has it.
type job struct {
	plan.Candidate
	version   int
	suspended bool
	finished  bool
	// noted is the condition JobSuspended, which its controller sets; begun is its start time.
	noted, begun bool
	// record is what the template gives to new pods.
	record      string
	recordToken int64
	// seen is what the Job's controller has in its cache, a while behind.
	seen *job
}

func (s *site) findJob(uid string) *job {
	for _, j := range s.jobs {
		if j.UID == uid {
			return j
		}
	}
	return nil
}

func (s *site) versionOf(uid string) (int, bool) {
	if o := s.find(uid); o != nil {
		return o.version, true
	}
	if j := s.findJob(uid); j != nil {
		return j.version, true
	}
	return 0, false
}

func (s *site) workloadUID() string { return s.name + "-web" }

func (s *site) touchJob(j *job) { j.version++; s.changed() }

// runJobs is the Job controller for a second, and whoever makes new Jobs.
func (s *site) runJobs(now time.Time) {
	for _, j := range append([]*job(nil), s.jobs...) {
		if j.seen == nil || !now.Before(s.stalled) && s.rnd.IntN(3) > 0 {
			was := *j
			j.seen = &was
		}
		s.syncJob(now, j)
	}
	open := 0
	for _, j := range s.jobs {
		if !j.finished {
			open++
		}
	}
	if open < 2 {
		s.created++
		c := gated(fmt.Sprintf("job-%d", s.created), 0)
		c.Kind, c.UID, c.Created, c.ReadySince = plan.KindJob, fmt.Sprintf("%s-job-%d", s.name, s.created), now, now
		c.Group = c.UID
		s.jobs = append(s.jobs, &job{Candidate: c, suspended: true})
		s.changed()
	}
}

// syncJob works from the cache: pods first, then the status, which conflicts if the Job has changed.
func (s *site) syncJob(now time.Time, j *job) {
	view := j.seen
	if view.finished {
		return
	}
	n := 0
	for _, o := range append([]*object(nil), s.objects...) {
		switch {
		case o.job != j.UID || o.Body.Terminal && o.Body.Stopped:
		case view.suspended && !o.Body.Deleting:
			s.delete(now, o, o.Body.Grace)
		case !o.Body.Deleting:
			n++
		}
	}
	for ; n < 2 && !view.suspended; n++ {
		s.createJobPod(now, view)
	}
	if view.version == j.version && (j.noted != view.suspended || j.begun == view.suspended) {
		j.noted, j.begun = view.suspended, !view.suspended
		s.touchJob(j)
	}
}

func (s *site) createJobPod(now time.Time, from *job) {
	s.create(now)
	o := s.objects[len(s.objects)-1]
	o.Gated, o.job, o.Record, o.RecordToken = false, from.UID, from.record, from.recordToken
	p := s.procs[o.UID]
	p.unit, p.tenure = from.UID, from.record
}

// writeJob carries out an effect on a Job.
func (d *decider) writeJob(j *job, st plan.Status, a plan.Action) {
	switch a.Kind {
	case plan.Start:
		j.suspended = false
		j.record, j.recordToken = st.Holder.Owner, st.FencingToken
		j.Record, j.RecordToken = j.record, j.recordToken
		d.w.checkFencing(st)
	case plan.Record:
		j.Record, j.RecordToken = st.Holder.Owner, st.FencingToken
	case plan.Spoil:
		j.Ended = st.FencingToken
	case plan.Suspend:
		j.suspended = true
	case plan.Reset:
		if j.suspended {
			j.begun = false
		} else {
			j.noted = false
		}
	}
	d.s.touchJob(j)
}

// composites are the Jobs or the workload of a site as conch sees them.
func (d *decider) composites(now time.Time) []plan.Candidate {
	var out []plan.Candidate
	if d.s.kind == plan.KindDeployment {
		return append(out, d.workload(now))
	}
	left := map[string]bool{}
	for _, o := range d.s.objects {
		left[o.job] = left[o.job] || !(o.Body.Terminal && o.Body.Stopped && !o.Body.Collected)
	}
	for _, j := range d.s.jobs {
		c := j.Candidate
		c.Gated, c.Body.Terminal = j.suspended, j.finished
		c.Quiet = j.finished || j.suspended && j.noted
		c.Busy = j.suspended && j.begun && !j.noted
		c.Stale = !j.suspended && j.noted
		out = append(out, d.withMembers(now, c))
		delete(left, j.UID)
	}
	if h := d.s.status.Holder; d.s.status.Ours(d.s.name) && d.s.findJob(h.UID) == nil {
		left[h.UID] = true
	}
	for _, uid := range slices.Sorted(maps.Keys(left)) { // one seed, one walk
		if !left[uid] {
			continue
		}
		c := plan.Candidate{Kind: plan.KindJob, Name: uid, UID: uid, Group: uid, Mode: plan.Exclusive, Marked: true, Quiet: true}
		c.Body.VanishedAt = d.missedAt(uid, now)
		out = append(out, recorded(d.withMembers(now, c)))
	}
	return out
}

func (d *decider) workload(now time.Time) plan.Candidate {
	c := gated("web", 0)
	c.Kind, c.UID, c.Group, c.Mode, c.Quiet = plan.KindDeployment, d.s.workloadUID(), d.s.workloadUID(), plan.ActivePassive, true
	c.Created = now
	return recorded(d.withMembers(now, c))
}

// recorded takes the record from the pods.
func recorded(c plan.Candidate) plan.Candidate {
	c.Gated = true
	for _, m := range c.Members {
		c.Gated = c.Gated && m.Gated
		if !m.Gated && m.RecordToken > c.RecordToken && m.Ended < m.RecordToken {
			c.Record, c.RecordToken = m.Record, m.RecordToken
			c.RecordedToken = tokenOf(c.Record, c.RecordToken)
		}
	}
	return c
}

// withMembers adds the pods, with those that vanished where somebody's death hangs on them.
func (d *decider) withMembers(now time.Time, c plan.Candidate) plan.Candidate {
	for _, o := range d.s.objects {
		if d.belongs(o, c.UID) {
			c.Members = append(c.Members, d.member(now, *o))
			c.Ready = c.Ready || o.Ready && !o.Body.Deleting
		}
	}
	if c.Record != "" {
		c.RecordedToken = tokenOf(c.Record, c.RecordToken)
	}
	mine := c.UID == d.s.status.Holder.UID && d.s.status.Ours(d.s.name)
	if c.Listed = mine && d.s.status.State == plan.Fencing || !mine && (c.Active() || c.Busy); !c.Listed {
		return c
	}
	for _, uid := range slices.Sorted(maps.Keys(d.graves)) {
		if o := d.graves[uid]; d.belongs(&o, c.UID) && d.s.find(uid) == nil {
			o.Body.Exists, o.Body.Final, o.Body.VanishedAt = false, true, d.missedAt(uid, now)
			c.Members = append(c.Members, d.member(now, o))
		}
	}
	return c
}

func (d *decider) belongs(o *object, uid string) bool {
	return o.job == uid || d.s.kind == plan.KindDeployment && uid == d.s.workloadUID()
}

func (d *decider) missedAt(uid string, now time.Time) time.Time {
	if _, known := d.missed[uid]; !known {
		d.missed[uid] = now
	}
	return d.missed[uid]
}

func (d *decider) member(now time.Time, o object) plan.Member {
	m := plan.Member{
		Namespace: "shop", Name: o.Name, UID: o.UID, Gated: o.Gated, Record: o.Record, RecordToken: o.RecordToken,
		Ended: o.Ended, NodeName: o.NodeName, Body: o.Body,
	}
	if o.on != nil {
		d.placeBody(now, o.UID, &m.Body, o.on, "")
	}
	return m
}

// finishJob lets a Job that works end by itself.
func finishJob(w *world) {
	s := w.anySite()
	for _, j := range s.jobs {
		if j.suspended || j.finished || !s.works(j.UID) || j.seen.version != j.version {
			continue
		}
		w.note("fault: %s of %s is done", j.Name, s.name)
		if s.allOut(j.UID) {
			j.finished = true
			s.touchJob(j)
			was := *j // it is the Job's controller itself that says so
			j.seen = &was
		}
		return
	}
}

// allOut ends the pods of a Job, if all of their nodes are there to say so.
func (s *site) allOut(uid string) bool {
	for _, o := range s.objects {
		if o.job == uid && (o.on == nil || !o.on.up || o.Body.Deleting) {
			return false
		}
	}
	for _, o := range s.objects {
		if o.job == uid {
			s.procs[o.UID].alive = false
			o.Body.Terminal, o.Body.Stopped = true, true
			s.touch(o)
		}
	}
	return true
}

// deleteJob removes a Job, and its pods with it or not.
func deleteJob(w *world) {
	s := w.anySite()
	if len(s.jobs) == 0 {
		return
	}
	i := w.rnd.IntN(len(s.jobs))
	j := s.jobs[i]
	orphan := w.chance(2)
	w.note("fault: %s of %s is deleted, orphans: %v", j.Name, s.name, orphan)
	s.jobs = append(s.jobs[:i:i], s.jobs[i+1:]...)
	for _, o := range append([]*object(nil), s.objects...) {
		if o.job == j.UID && !orphan {
			s.delete(w.now, o, o.Body.Grace)
		}
	}
	s.changed()
}

// suspendJob is somebody who suspends a Job by hand.
func suspendJob(w *world) {
	s := w.anySite()
	for _, j := range s.jobs {
		if !j.suspended && !j.finished {
			w.note("fault: %s of %s is suspended by hand", j.Name, s.name)
			j.suspended = true
			s.touchJob(j)
			return
		}
	}
}

// resumeJob is somebody who resumes a Job without the lock.
func resumeJob(w *world) {
	s := w.anySite()
	for _, j := range s.jobs {
		if j.suspended && !j.finished && w.chance(2) {
			w.note("fault: %s of %s is resumed by hand", j.Name, s.name)
			j.suspended = false
			s.touchJob(j)
			return
		}
	}
}

// stallJobs lets the Job controller work from what it knew, for a while.
func stallJobs(w *world) {
	s := w.anySite()
	s.stalled = w.now.Add(time.Duration(w.rnd.IntN(90)) * time.Second)
	w.note("fault: the Job controller of %s sees nothing new until %s", s.name, s.stalled.Sub(now))
}
