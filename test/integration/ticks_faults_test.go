package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/rig"
)

// tickCrashPoints is how many writes to the API server of one tick a crash is tried at, before and after
// each: more than there are.
const tickCrashPoints = 8

// Whatever conch does for a tick is a write to the API server or an order to Redis. It is killed right
// before and right after each, in a cluster that competes with another; the tick runs once at most, is
// accounted for in both, and the next one runs.
func TestConchKilledAtAnyStepOfATickRunsItOnceAtMost(t *testing.T) {
	t.Parallel()
	for _, policy := range []batchv1.ConcurrencyPolicy{batchv1.ForbidConcurrent, batchv1.AllowConcurrent} {
		for n := 1; n <= tickCrashPoints; n++ {
			for i, when := range []string{"before", "after"} {
				if !soaking() && (n+i+len(policy))%2 == 0 {
					continue // the other half runs in a soak
				}
				t.Run(fmt.Sprintf("%s %s write %d", policy, when, n), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					victim, spare := w.killedAt(when, n)
					w.survivesTheTick(policy, victim, 1)
					spare()
				})
			}
		}
	}
}

// killedAt starts a conch that is killed before or after its nth write to the API server, unless it is spared.
func (w *world) killedAt(when string, n int) (victim *rig.Conch, spare func()) {
	w.t.Helper()
	api, via := w.east.through()
	victim = w.east.conch(1, via)[0]
	var once sync.Once
	kill := func(wr rig.Write) {
		if wr.N == n {
			once.Do(victim.Kill)
		}
	}
	if when == "before" {
		api.Before(kill)
	} else {
		api.After(kill)
	}
	return victim, func() { once.Do(func() {}) }
}

// The same for what conch has Redis do: the nth command about ticks is not carried out, or carried out
// and not answered, when conch dies.
func TestConchKilledAtAnyCommandToRedisOfATickRunsItOnceAtMost(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		for when, mode := range map[string]proxy.Mode{"before": proxy.BlackHole, "after": proxy.HoldReply} {
			t.Run(fmt.Sprintf("%s command %d", when, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				link, via := w.slowly()
				victim := w.east.conch(1, via)[0]
				rules := []proxy.Rule{{Mode: mode, Commands: []string{"EVALSHA", "EVAL"}, Contains: ":tick:"}}
				if n > 0 {
					rules = append([]proxy.Rule{{Mode: proxy.Pass, Commands: []string{"EVALSHA", "EVAL"}, Contains: ":tick:", Times: n}}, rules...)
				}
				link.Set(rules...)
				dead := time.AfterFunc(4*time.Second, victim.Kill)
				defer dead.Stop()
				w.survivesTheTick(batchv1.ForbidConcurrent, victim, 1)
			})
		}
	}
}

// survivesTheTick has two clusters make a tick and the next one, while the conch of the first cluster dies
// and another starts in its place. The tick is started that many times at most.
func (w *world) survivesTheTick(policy batchv1.ConcurrencyPolicy, victim *rig.Conch, most int) {
	w.t.Helper()
	c := newCron("report")
	w.west.conch(1)
	for _, s := range []*side{w.east, w.west} {
		s.cronJob(c, policy)
	}
	revive := func() {
		if !victim.Alive() && len(w.east.conchs) == 1 {
			w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
		}
	}
	for minute := range 2 {
		w.east.tick(c, minute, runFor("2", 0))
		w.west.tick(c, minute, runFor("2", 0))
		w.Eventually(func() []string {
			revive()
			return []string{w.east.verdict(c, minute), w.west.verdict(c, minute)}
		}, within, look).Should(HaveEach("over"), func() string {
			return fmt.Sprintf("%s: east %q, west %q", c.job(minute), w.east.outcome(c, minute), w.west.outcome(c, minute))
		})
		w.Expect(w.tickStarts()[c.job(minute)]).To(BeNumerically("<=", most))
	}
	w.Expect(w.tickStarts()[c.job(1)]).To(Equal(1))
	if policy != batchv1.AllowConcurrent {
		ledger.Verdict(w.t, w.ledger)
	}
}

// verdict is "over" once the status has the last word about a tick.
func (s *side) verdict(c cron, minute int) string {
	outcome, _, _ := strings.Cut(s.outcome(c, minute), " ")
	switch outcome {
	case "succeeded", "failed", "skipped":
		return "over"
	}
	return outcome
}

// Redis forgets a tick that runs, or remembers it as merely claimed. It is not run again, though the other
// cluster makes a Job for it anew.
func TestATickThatRedisForgetsWhileItRunsIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(w *world, c cron){
		"emptied": func(w *world, _ cron) { w.redis.Do(w.t, "FLUSHALL") },
		"restarted without persistence": func(w *world, _ cron) {
			w.redis.Kill()
			w.Expect(w.redis.Restart(w.t.Context())).To(Succeed())
		},
		"failed over to a replica that lagged behind": func(w *world, c cron) {
			key := strings.TrimSuffix(w.keyOf(c.lock), "}") + "}:tick:" + strings.TrimPrefix(c.job(0), c.name+"-")
			token, ok := w.redis.Do(w.t, "GET", key).(string)
			w.Expect(ok).To(BeTrue())
			w.Expect(token).To(HaveSuffix("#started"))
			w.redis.Do(w.t, "FLUSHALL")
			w.redis.Do(w.t, "SET", key, strings.TrimSuffix(token, "started")+"claimed", "PX", "500")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.pairOf("report", batchv1.ForbidConcurrent)
			w.east.tick(c, 0, runFor("25", 0))
			w.east.jobRuns(c.lock, c.job(0), 1)
			w.west.tick(c, 0, runFor("1", 0))
			w.west.comesTo(c, 0, "skipped RunsElsewhere")
			w.Eventually(func() string { return w.west.jobReads(c.job(0)) }, within, look).Should(Equal("gone"))
			forget(w, c)
			again := w.west.tick(c, 0, runFor("1", 0))
			w.Eventually(func() string {
				for _, tick := range w.west.lock(c.lock).Status.RecentTicks {
					if tick.UID == again.UID {
						return tick.Outcome
					}
				}
				return w.west.jobReads(c.job(0))
			}, within, look).Should(Equal("skipped"))
			w.Eventually(func() string { return w.east.verdict(c, 0) }, within, look).Should(Equal("over"))
			w.west.tick(c, 1, runFor("1", 0))
			w.west.comesTo(c, 1, "succeeded")
			w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 1, c.job(1): 1}))
			ledger.Verdict(t, w.ledger)
		})
	}
}

// Under Forbid a run is stopped when its lock cannot be kept, and is not run again when Redis is back. Under
// Allow its record does not run out, so that it runs on.
func TestATickWhoseRedisIsAwayIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for policy, want := range map[batchv1.ConcurrencyPolicy]string{
		batchv1.ForbidConcurrent: "failed LostAfterStart", batchv1.AllowConcurrent: "succeeded",
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.pairOf("report", policy)
			w.east.tick(c, 0, runFor("15", 0))
			w.Eventually(func() []string { return names(w.east.jobPods(c.job(0))) }, within, look).Should(HaveLen(1))
			w.Expect(w.redis.Stop()).To(Succeed())
			w.west.tick(c, 0, runFor("1", 0))
			away := 12 * time.Second
			if soaking() {
				away = time.Minute
			}
			w.Consistently(func() string { return w.west.jobReads(c.job(0)) }, away, look).Should(Equal("suspended"))
			w.Expect(w.redis.Cont()).To(Succeed())
			w.east.comesTo(c, 0, want)
			w.west.comesTo(c, 0, "skipped RunsElsewhere")
			w.west.tick(c, 1, runFor("1", 0))
			w.west.comesTo(c, 1, "succeeded")
			w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(0): 1, c.job(1): 1}))
		})
	}
}

// A claim that never became a start runs out with the conch that made it, and the other cluster runs the tick.
func TestATickWhoseClaimRanOutIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.pairOf("report", batchv1.ForbidConcurrent)
	w.west.job(c.lock, "blocker", runFor("12", 0))
	w.west.jobRuns(c.lock, "blocker", 1)
	w.east.tick(c, 0, runFor("1", 0))
	key := w.keyOf(c.lock) + ":tick:" + strings.TrimPrefix(c.job(0), c.name+"-")
	w.Eventually(func() string { return w.redisClient().Get(t.Context(), key).Val() }, within, look).Should(HaveSuffix("#claimed"))
	w.east.conchs[0].Kill()
	w.west.tick(c, 0, runFor("1", 0))
	w.west.comesTo(c, 0, "succeeded")
	w.east.conch(1)
	w.east.comesTo(c, 0, "skipped RunsElsewhere")
	w.Expect(w.tickStarts()[c.job(0)]).To(Equal(1))
	ledger.Verdict(t, w.ledger)
}

// A run of which no pod gets going holds up a newer one for startDeadline, and is put back then.
func TestATickWithoutAPodIsPutBackForANewerOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCron("report")
	quick := func(s *lockv1alpha1.DistributedLockSpec) { s.StartDeadline = seconds(4) }
	for _, s := range []*side{w.east, w.west} {
		s.newLock(c.lock, quick)
		s.conch(1)
		s.cronJob(c, batchv1.ForbidConcurrent)
	}
	w.east.agent.NeverStart("*")
	w.east.tick(c, 0)
	w.east.comesTo(c, 0, "started")
	w.west.tick(c, 1, runFor("1", 0))
	w.west.comesTo(c, 1, "succeeded")
	w.east.comesTo(c, 0, "skipped Superseded")
	w.Expect(w.tickStarts()).To(Equal(map[string]int{c.job(1): 1}))
	ledger.Verdict(t, w.ledger)
}
