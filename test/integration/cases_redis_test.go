package integration

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/rig"
)

// C15: a hundred locks of a short ttl over a link whose delay keeps changing.
func TestAHundredLocksOverASlowLinkNeverRunLow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, via := w.slowly()
	w.east.conch(1, via)
	locks := w.east.manyHeld("many", rounds(100, 500))
	keys, c := w.keysOf(w.east, locks), w.redisClient()
	for i := range rounds(9, 300) {
		link.Set(proxy.Rule{Mode: proxy.Delay, Delay: time.Duration(50+(i*37)%101) * time.Millisecond})
		w.Consistently(func() time.Duration { return w.shortest(c, keys) }, 800*time.Millisecond, look).Should(BeNumerically(">=", 2*time.Second))
	}
	link.Heal()
	for _, name := range locks[:3] {
		w.Expect(w.east.lock(name).Status.Tenures).To(BeEquivalentTo(1))
	}
	ledger.Verdict(t, w.ledger)
}

// C17: Redis is cut off for longer than any lock lasts. Afterwards all are held and renewed again, by the same conch; those that
// hold on loss have kept their pods.
func TestLocksAreRenewedAgainAfterACutThatCostThemAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, via := w.slowly()
	w.east.conch(1, via)
	var all []string
	for i := range rounds(3, 10) {
		for mode, loss := range map[string]lockv1alpha1.BackendLoss{"stays": lockv1alpha1.BackendLossHold, "stops": lockv1alpha1.BackendLossFence} {
			name := fmt.Sprintf("%s-%d", mode, i)
			w.east.newLock(name, ttl(5), onLoss(loss))
			w.east.exclusive(name, 1, grace(1))
			all = append(all, name)
		}
	}
	before := map[string]*lockv1alpha1.DistributedLock{}
	for _, name := range all {
		w.east.runs(name, 0)
		before[name] = w.east.holds(name)
	}
	c, keys := w.redisClient(), w.keysOf(w.east, all)
	link.Set(proxy.Rule{Mode: proxy.Cut})
	w.Eventually(func() int { return w.missing(c, keys) }, within, look).Should(Equal(len(keys)))
	w.Consistently(func() int { return w.missing(c, keys) }, 2*time.Second, look).Should(Equal(len(keys)))
	link.Heal()
	for _, name := range all {
		after := w.east.passesOn(name, before[name].Status.FencingToken)
		w.east.runs(name, 0)
		stayed := after.Status.Holder.UID == before[name].Status.Holder.UID
		w.Expect(stayed).To(Equal(name[:5] == "stays"), name)
	}
	w.Consistently(func() time.Duration { return w.shortest(c, keys) }, 5*time.Second, look).Should(BeNumerically(">", time.Second))
	ledger.Verdict(t, w.ledger)
}

// C03, C05: what stands under the key and is not of conch is never taken away and never written to, whatever it is.
func TestWhateverStandsUnderTheKeyIsHeldBySomebodyElse(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string][]any{
		"a value with an end": {"SET", "somebody else", "PX", "600000"},
		"a value without end": {"SET", "somebody else"},
		"a hash":              {"HSET", "field", "value"},
		"a list":              {"RPUSH", "value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.east.conch(1)
			key := w.keyOf("jobs")
			w.redis.Do(t, append([]any{plant[0], key}, plant[1:]...)...)
			dump := w.redis.Do(t, "DUMP", key)
			w.east.newLock("jobs")
			w.east.exclusive("jobs", 1)
			w.east.says("jobs", lockv1alpha1.ConditionHeld, "False HeldByForeign")
			w.east.says("jobs", lockv1alpha1.ConditionReady, "False HeldByForeign")
			w.east.gatedOnly("jobs", 1, 2*time.Second)
			w.Expect(w.redis.Do(t, "DUMP", key)).To(Equal(dump))
			w.redis.Do(t, "DEL", key)
			w.east.runs("jobs", 0)
			w.east.says("jobs", lockv1alpha1.ConditionReady, "True")
			ledger.Verdict(t, w.ledger)
		})
	}
}

// C37: what locks leave behind is bounded, and runs out; and a lock that is made again goes on above its last token.
func TestLocksThatCameAndWentLeaveLittleAndAreRememberedInTheirTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	c := w.redisClient()
	var locks []string
	var first int64
	for round := range rounds(1, 100) {
		batch := w.east.manyHeld(fmt.Sprintf("round-%d", round), 100, ttl(longTTL))
		if round == 0 {
			first = w.east.lock(batch[0]).Status.FencingToken
		}
		keys := w.keysOf(w.east, batch)
		for _, name := range batch {
			w.Expect(w.east.client.Delete(t.Context(), w.east.lock(name))).To(Succeed())
		}
		w.Eventually(func() int { return w.missing(c, keys) }, within, look).Should(Equal(len(keys)))
		locks = append(locks, batch...)
	}
	all, left := c.Keys(t.Context(), "*").Val(), c.Keys(t.Context(), w.keyOf("*")+"*").Val()
	w.Expect(left).To(HaveLen(2 * len(locks)))
	w.Expect(len(all)-len(left)).To(BeNumerically("<", 10), "what conch keeps for itself does not grow with the locks")
	for _, key := range left {
		w.Expect(c.PTTL(t.Context(), key).Val()).To(BeNumerically(">", 0), key)
	}
	w.east.newLock(locks[0])
	w.east.gone(locks[0])
	w.east.bare(locks[0], locks[0])
	w.Expect(w.east.holds(locks[0]).Status.FencingToken).To(BeNumerically(">", first))
	ledger.Verdict(t, w.ledger)
}

// C03: conch is killed while it acquires. Whatever it left has an end.
func TestNoKeyIsLeftWithoutAnEndWhenConchIsKilledWhileItAcquires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.agent.NeverStart("*")
	c := w.redisClient()
	for round := range rounds(2, 20) {
		conch := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
		for i := range 20 {
			name := fmt.Sprintf("many-%d-%d", round, i)
			w.east.newLock(name)
			w.east.bare(name, name)
		}
		w.Eventually(func() int { return len(c.Keys(t.Context(), "conch:{*").Val()) }, within, time.Millisecond).Should(BeNumerically(">", 10*(round+1)))
		conch.Kill()
		for _, key := range c.Keys(t.Context(), "conch:{*").Val() {
			w.Expect(c.PTTL(t.Context(), key).Val()).NotTo(BeEquivalentTo(-1), key)
		}
	}
	ledger.Verdict(t, w.ledger)
}

// C25: a glitch of a second costs nothing, wherever it falls between two renewals.
func TestAGlitchOfASecondCostsNoTenure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, via := w.slowly()
	w.east.conch(1, via)
	w.east.newLock("jobs", ttl(9))
	w.east.exclusive("jobs", 1)
	w.east.runs("jobs", 0)
	w.east.holds("jobs")
	before, c := w.east.unchanged("jobs"), w.redisClient()
	keeps := func() bool {
		return w.east.unchanged("jobs") == before && c.PTTL(t.Context(), w.keyOf("jobs")).Val() > 3*time.Second
	}
	for i := range rounds(4, 30) {
		link.Set(proxy.Rule{Mode: proxy.Cut})
		w.Consistently(keeps, time.Second, look).Should(BeTrue())
		link.Heal()
		w.Consistently(keeps, time.Second+time.Duration(i%5)*200*time.Millisecond, look).Should(BeTrue())
	}
	ledger.Verdict(t, w.ledger)
}

// C29: one cluster is cut off from Redis and the other is not. The holder stops first, the other one starts afterwards, and the
// cluster that comes back waits.
func TestAClusterCutOffFromRedisStopsBeforeAnotherStartsAndWaitsWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link, via := w.slowly()
	w.east.conch(1, via)
	w.west.conch(1)
	w.east.newLock("jobs", ttl(5))
	w.east.exclusive("jobs", 1, grace(1))
	first := w.east.runs("jobs", 0)
	w.east.holds("jobs")
	w.west.newLock("jobs", ttl(5))
	w.west.exclusive("jobs", 1)
	w.Eventually(func() string { return describe(w.west.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))
	link.Set(proxy.Rule{Mode: proxy.Cut})
	w.east.gone(first.Name)
	w.west.holds("jobs")
	w.west.runs("jobs", 0)
	link.Heal()
	w.Eventually(func() string { return describe(w.east.lock("jobs")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	w.east.gatedOnly("jobs", 1, time.Second)
	ledger.Verdict(t, w.ledger)
}

// C01: the answer to the acquire is lost on its way. The key is ours all the same, and nobody waits for its end.
func TestAnAcquireWhoseAnswerIsLostStartsItsHolder(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]proxy.Mode{"the link breaks": proxy.Cut, "the link stays": proxy.SwallowReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			link, via := w.slowly()
			w.east.conch(1, via)
			link.Set(proxy.Rule{Mode: mode, Commands: []string{"EVALSHA", "EVAL"}, Contains: "/jobs", Times: 1})
			w.east.newLock("jobs", ttl(longTTL))
			w.east.exclusive("jobs", 1)
			asked := time.Now()
			l := w.east.holds("jobs")
			w.Expect(time.Since(asked)).To(BeNumerically("<", 15*time.Second))
			w.Expect(w.redisClient().Get(t.Context(), w.keyOf("jobs")).Val()).To(Equal(l.Status.Token))
			w.east.runs("jobs", 0)
			ledger.Verdict(t, w.ledger)
		})
	}
}
