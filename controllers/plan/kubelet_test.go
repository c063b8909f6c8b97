package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// machine is a model of a node. Its processes live on while it cannot be reached.
type machine struct {
	name  string
	up    bool
	gone  bool
	since time.Time // up since
	boot  int
}

// proc is what really runs, whatever the API says about it.
type proc struct {
	uid      string
	on       *machine
	alive    bool
	acting   bool // does what only a holder may do
	grace    time.Duration
	orphaned time.Time // its object has been gone since
	// unit is the candidate that it works for, and tenure the owner under which it does, if that is not
	// the pod itself.
	unit, tenure string
}

// object is a pod as the API server has it.
type object struct {
	plan.Candidate
	version int
	on      *machine
	// job is the Job that made the pod, if one did.
	job string
}

// site is one cluster: its API objects, its nodes, and what runs on them.
type site struct {
	name    string
	rnd     *rand.Rand
	mode    plan.Mode
	kind    string // Pod, Job or Deployment: what contends
	jobs    []*job
	stalled time.Time // until then the Job controller's cache stands still
	status  plan.Status
	objects []*object
	procs   map[string]*proc
	nodes   []*machine
	created int
	changed func()
	buried  func(object)
}

func (s *site) find(uid string) *object {
	for _, o := range s.objects {
		if o.UID == uid {
			return o
		}
	}
	return nil
}

// touch is a write to an object.
func (s *site) touch(o *object) { o.version++; s.changed() }

// create is the workload's controller making a pod.
func (s *site) create(now time.Time) {
	s.created++
	c := gated(fmt.Sprintf("pod-%d", s.created), 0)
	c.UID, c.Created, c.ReadySince, c.Group = fmt.Sprintf("%s-%d", s.name, s.created), now, now, s.name
	c.Mode, c.Gated = s.mode, s.mode != plan.Leader
	if s.rnd.IntN(3) == 0 {
		c.Body.Grace = 4 * podGrace
	}
	s.objects = append(s.objects, &object{Candidate: c})
	s.procs[c.UID] = &proc{uid: c.UID, grace: c.Body.Grace, unit: c.UID}
	if s.kind == plan.KindDeployment {
		s.procs[c.UID].unit = s.workloadUID()
	}
	s.changed()
}

// remove takes an object out of the API, whatever its process does.
func (s *site) remove(now time.Time, o *object) {
	for i, other := range s.objects {
		if other == o {
			s.objects = append(s.objects[:i:i], s.objects[i+1:]...)
		}
	}
	s.procs[o.UID].orphaned = now
	s.buried(*o)
	s.changed()
}

// remove by the API: a pod that is on no node goes at once, another one when its kubelet says so.
func (s *site) delete(now time.Time, o *object, grace time.Duration) {
	if o.on == nil {
		s.remove(now, o)
		return
	}
	if by := now.Add(grace); !o.Body.Deleting || by.Before(o.Body.Deadline) {
		o.Body.Deleting, o.Body.Deadline = true, by
		s.touch(o)
	}
}

// tick lets the scheduler, the kubelets and the workload's controller work for a second.
func (s *site) tick(now time.Time) {
	fit := 0
	for _, o := range append([]*object(nil), s.objects...) {
		if !o.Body.Deleting && !o.Body.Terminal {
			fit++
		}
		switch {
		case o.on == nil && !o.Gated:
			s.bind(o)
		case o.on != nil && o.on.gone && now.Sub(o.on.since) > 40*time.Second:
			o.Body.Terminal, o.Body.Stopped, o.Body.Collected = true, true, true
			s.remove(now, o) // as the garbage collector does
		case o.on != nil && o.on.up:
			s.sync(now, o)
		}
		if o.Body.Terminal && !o.Body.Deleting && s.kind != plan.KindJob {
			s.delete(now, o, o.Body.Grace)
		}
	}
	for _, p := range s.procs {
		s.reap(now, p)
	}
	switch {
	case s.kind == plan.KindJob:
		s.runJobs(now)
	case fit < 2:
		s.create(now)
	}
}

func (s *site) bind(o *object) {
	if n := s.nodes[s.rnd.IntN(len(s.nodes))]; n.up {
		o.on, o.NodeName, o.Body.Bound = n, n.name, true
		s.procs[o.UID].on = n
		s.touch(o)
	}
}

// sync is a kubelet with one of its pods.
func (s *site) sync(now time.Time, o *object) {
	p := s.procs[o.UID]
	switch {
	case o.Body.Stopped && o.Body.Deleting:
		s.remove(now, o)
	case o.Body.Deleting && p.alive && (!now.Before(o.Body.Deadline) || s.rnd.IntN(8) == 0):
		p.alive = false
	case o.Body.Deleting && !p.alive:
		o.Body.Stopped = true
		s.touch(o)
	case !o.Body.Deleting && !o.Body.Terminal && !p.alive:
		p.alive = true
		p.acting = p.acting || s.mode != plan.Leader
		s.ready(now, o, true)
	case !o.Ready && !o.Body.Deleting && s.rnd.IntN(20) == 0:
		s.ready(now, o, true)
	}
}

func (s *site) ready(now time.Time, o *object, yes bool) {
	if o.Ready != yes {
		o.Ready, o.ReadySince = yes, now
		s.touch(o)
	}
}

// reap is a kubelet with a process whose object is gone.
func (s *site) reap(now time.Time, p *proc) {
	switch {
	case p.on == nil:
	case p.on.gone:
		p.alive = false
	case p.alive && !p.orphaned.IsZero() && p.on.up && !now.Before(laterOf(p.orphaned, p.on.since).Add(p.grace)):
		p.alive = false
	}
	if !p.alive && !p.orphaned.IsZero() {
		delete(s.procs, p.uid)
	}
}

// acting are the candidates of which a process does what only a holder may do, each with its tenure.
func (s *site) acting() []string {
	var out []string
	for _, p := range s.procs {
		if name := strings.TrimSuffix(p.unit+" "+p.tenure, " "); p.alive && p.acting && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// works reports whether any process works for a candidate.
func (s *site) works(unit string) bool {
	for _, p := range s.procs {
		if p.unit == unit && p.alive && p.acting {
			return true
		}
	}
	return false
}
