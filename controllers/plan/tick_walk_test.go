package plan_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// TestTicksWalk lets two clusters run the same schedule while deciders crash between an effect and what
// they meant to note, Redis is cut off or emptied, and Jobs are slow, fail or are never made.
func TestTicksWalk(t *testing.T) {
	walks := map[string]tickWalk{
		"Forbid":               {policy: plan.Forbid},
		"Replace":              {policy: plan.Replace},
		"Allow":                {policy: plan.Allow},
		"Forbid, data lost":    {policy: plan.Forbid, flushes: true},
		"Allow, data lost":     {policy: plan.Allow, flushes: true},
		"Forbid, clusters die": {policy: plan.Forbid, outages: true},

		"Forbid, run again elsewhere":                          {policy: plan.Forbid, retries: true},
		"Replace, run again elsewhere":                         {policy: plan.Replace, retries: true},
		"Forbid, run again elsewhere, data lost":               {policy: plan.Forbid, retries: true, flushes: true},
		"Forbid, run again elsewhere, clusters die":            {policy: plan.Forbid, retries: true, outages: true},
		"Forbid, run again elsewhere, one cluster never back":  {policy: plan.Forbid, retries: true, death: true},
		"Replace, run again elsewhere, one cluster never back": {policy: plan.Replace, retries: true, death: true},
	}
	for name, k := range walks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range tickSeeds() {
				if w := k.run(seed); len(w.broken) > 0 {
					t.Fatalf("seed %d:\n%s", seed, w.story())
				}
			}
		})
	}
}

type tickWalk struct {
	policy  plan.Concurrency
	flushes bool // Redis loses its data
	outages bool // a whole cluster is away for minutes
	retries bool // retryElsewhere
	death   bool // a whole cluster dies, with all that runs there, and never comes back
}

const ticksPerWalk = 12

func (k tickWalk) run(seed uint64) *tickWorld {
	w := newTickWorld(seed, k.policy)
	w.retries = k.retries
	dies := int64(1 + w.rnd.IntN(ticksPerWalk))
	w.mayOverlap = k.policy == plan.Allow || k.outages // nobody stops a run whose conch is away
	for minute := int64(1); minute <= ticksPerWalk; minute++ {
		w.schedule(minute)
		for second := range 60 {
			if len(w.broken) > 0 {
				return w
			}
			if k.death && minute == dies && second == 20 {
				w.say("cluster a dies for good")
				w.sites[0].dead = true
			}
			if w.chance(25) {
				k.fault(w)
			}
			w.second()
		}
	}
	// Everything comes back; another tick comes, and must run.
	w.heal()
	for range 5 * 60 {
		w.second()
	}
	w.schedule(ticksPerWalk + 6)
	for range 5 * 60 {
		w.second()
	}
	w.account()
	return w
}

func (k tickWalk) fault(w *tickWorld) {
	s := w.sites[w.rnd.IntN(2)]
	switch n := w.rnd.IntN(4); {
	case n == 0:
		s.crash()
	case n == 1:
		s.cutUntil = w.now.Add(time.Duration(1+w.rnd.IntN(4)) * time.Second)
		w.say("%s is cut off from Redis until %s", s.name, w.at(s.cutUntil))
	case n == 2 && k.flushes && w.now.After(w.flushAgain):
		w.flush()
	case n == 3 && k.outages:
		s.awayUntil = w.now.Add(time.Duration(w.rnd.IntN(150)) * time.Second)
		s.crash()
		w.say("conch of %s is away until %s", s.name, w.at(s.awayUntil))
	}
}

// account holds what happened against what had to.
func (w *tickWorld) account() {
	for minute, made := range w.made {
		var ran, skipped int
		for _, s := range w.sites {
			if s.dead {
				made -= min(1, len(s.jobsOf(minute)))
				continue
			}
			switch s.notes[minute].Outcome {
			case plan.Succeeded, plan.Failed:
				ran++
			case plan.Skipped:
				skipped++
			case plan.NotNoted:
				if j := s.jobs[minute]; w.policy == plan.Replace && j != nil && j.gone {
					skipped++ // it waited, and was deleted for a newer one
				}
			case plan.Begun, plan.Halting, plan.PuttingBack:
			}
		}
		if ran+skipped != made {
			w.fail("tick %d: %d Jobs, of which %d ran and %d were skipped: %+v %+v", minute, made, ran, skipped, w.sites[0].notes[minute], w.sites[1].notes[minute])
		}
		if ran > 1 && !w.retries {
			w.fail("tick %d is noted as run %d times", minute, ran)
		}
	}
	if w.starts[ticksPerWalk+6] != 1 {
		w.fail("the tick after all faults was started %d times", w.starts[ticksPerWalk+6])
	}
}

// tickSeeds is how many walks of each kind there are; CONCH_WALKS sets another number.
func tickSeeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("CONCH_WALKS"), 10, 64); err == nil {
		return n
	}
	return 40
}
