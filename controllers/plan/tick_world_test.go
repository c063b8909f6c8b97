package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

const (
	tickTTL      = 15 * time.Second
	tickRenew    = 3 * time.Second
	tickTakeover = 10 * time.Second
	// tickFence is how long before the end of the plain lock its holder is stopped.
	tickFence = 4 * time.Second
)

// tickRecord is a tick as it stands in Redis, plainRecord the plain lock.
type tickRecord struct {
	owner   string
	fence   int64
	stage   plan.Stage
	expires time.Time
}

type plainRecord struct {
	owner   string
	expires time.Time
}

// tickWorld is two clusters and a Redis; small enough to be believed, and different from the real ones in
// everything but what DecideTick sees.
type tickWorld struct {
	rnd    *rand.Rand
	now    time.Time
	policy plan.Concurrency
	// mayOverlap is true where nothing is promised about two that run at the same time.
	mayOverlap bool
	retries    bool // retryElsewhere
	flushed    bool // Redis lost its data at least once
	sites      []*tickSite
	ticks      map[int64]*tickRecord
	begun      map[int64]bool // minutes the store knows to have been started
	plain      *plainRecord
	fence      int64
	// settleUntil is until when nobody new may start, after data was lost; flushAgain when that may happen again.
	settleUntil, flushAgain time.Time
	retry                   tickRetry

	starts map[int64]int
	made   map[int64]int
	lines  []string
	broken []string
}

func newTickWorld(seed uint64, policy plan.Concurrency) *tickWorld {
	w := &tickWorld{
		rnd: rand.New(rand.NewPCG(seed, 7)), now: now, policy: policy, fence: 100,
		ticks: map[int64]*tickRecord{}, begun: map[int64]bool{}, starts: map[int64]int{}, made: map[int64]int{},
		retry: tickRetry{taken: map[int64]int64{}, over: map[int64]bool{}},
	}
	for _, name := range []string{"a", "b"} {
		w.sites = append(w.sites, &tickSite{w: w, name: name, jobs: map[int64]*tickJob{}, notes: map[int64]plan.TickNote{}, entries: map[int64]*tickEntry{}, endings: map[int64]plan.Reason{}})
	}
	return w
}

func (w *tickWorld) chance(oneIn int) bool { return w.rnd.IntN(oneIn) == 0 }
func (w *tickWorld) at(t time.Time) string { return fmt.Sprint(int(t.Sub(now).Seconds())) }
func (w *tickWorld) say(format string, a ...any) {
	w.lines = append(w.lines, w.at(w.now)+": "+fmt.Sprintf(format, a...))
}

func (w *tickWorld) fail(format string, a ...any) {
	w.say("BROKEN: "+format, a...)
	w.broken = append(w.broken, fmt.Sprintf(format, a...))
}

func (w *tickWorld) story() string { return strings.Join(w.lines, "\n") }

// schedule has each cluster's CronJob controller make the Job of a tick, with some skew, unless it is held
// back by a run that goes on.
func (w *tickWorld) schedule(minute int64) {
	for _, s := range w.sites {
		if s.dead || w.chance(10) && !s.healthy {
			continue
		}
		s.due = append(s.due, due{minute, w.now.Add(time.Duration(w.rnd.IntN(6)) * time.Second)})
	}
}

func (w *tickWorld) flush() {
	w.say("Redis loses its data")
	w.flushed = true
	w.ticks, w.begun, w.plain = map[int64]*tickRecord{}, map[int64]bool{}, nil
	w.retry = tickRetry{taken: map[int64]int64{}, over: map[int64]bool{}}
	w.settleUntil = w.now.Add(tickTTL + tickTakeover)
	w.flushAgain = w.settleUntil.Add(tickTTL)
}

func (w *tickWorld) heal() {
	w.flushAgain = w.now.Add(time.Hour)
	for _, s := range w.sites {
		s.cutUntil, s.awayUntil, s.healthy = time.Time{}, time.Time{}, true
	}
}

func (w *tickWorld) second() {
	w.now = w.now.Add(time.Second)
	for minute, r := range w.ticks {
		if w.now.After(r.expires) {
			delete(w.ticks, minute)
		}
	}
	if w.plain != nil && w.now.After(w.plain.expires) {
		w.plain = nil
		w.settleUntil = w.now.Add(tickTakeover) // it was not given back
	}
	for _, i := range w.rnd.Perm(2) {
		w.sites[i].second()
	}
	w.checkOverlap()
}

func (w *tickWorld) checkOverlap() {
	var running []string
	for _, s := range w.sites {
		for minute, j := range s.jobs {
			if j.working {
				running = append(running, fmt.Sprintf("%s/%d", s.name, minute))
			}
		}
	}
	slices.Sort(running)
	if !w.mayOverlap && len(running) > 1 {
		w.fail("%v run at the same time", running)
	}
}

// newest is the newest minute that the store knows to have been started.
func (w *tickWorld) newest() int64 {
	newest := int64(0)
	for minute := range w.begun {
		newest = max(newest, minute)
	}
	return newest
}
