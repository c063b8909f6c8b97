package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/rig"
)

// longTTL outlasts every test here, so that a key that goes was given back and has not run out.
const longTTL = 60

// rounds is how often something is repeated: a few times, or a soak's count.
func rounds(few, soak int) int {
	if soaking() {
		return soak
	}
	return few
}

// bare creates a gated pod that belongs to no workload and is not restarted.
func (s *side) bare(lock, name string, mods ...func(*corev1.PodTemplateSpec)) *corev1.Pod {
	s.w.t.Helper()
	t := s.template(lock, "exclusive", s.w.worker, "exclusive", "-ledger", s.w.ledger.Path())
	t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}}
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, mod := range mods {
		mod(&t)
	}
	p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	p.Namespace, p.Name = s.w.ns, name
	s.w.Expect(s.client.Create(s.w.t.Context(), p)).To(Succeed())
	return p
}

// manyHeld creates n locks of one prefix, and for each a bare pod without a process, and waits until all are held.
func (s *side) manyHeld(prefix string, n int, mods ...func(*lockv1alpha1.DistributedLockSpec)) []string {
	s.w.t.Helper()
	s.agent.NeverStart("*")
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		s.newLock(names[i], mods...)
		s.bare(names[i], names[i])
	}
	for _, name := range names {
		s.holds(name)
	}
	return names
}

// wants makes pods want another lock than the one that they are named after.
func wants(lock string) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) {
		p.Annotations[lockv1alpha1.AnnotationLock] = lock
		contends(lock)(p)
	}
}

// contends tells the ledger which key a pod works under, where that is not the name of its lock.
func contends(key string) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env[0].Value = key }
}

func ungated(p *corev1.PodTemplateSpec) { p.Spec.SchedulingGates = nil }

// flags adds to the command line of the worker.
func flags(args ...string) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) {
		c := &p.Spec.Containers[0]
		c.Command = append(c.Command, args...)
	}
}

func grace(seconds int64) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

// passesOn waits until somebody here holds the lock and works with a higher fencing token than before.
func (s *side) passesOn(lock string, before int64) *lockv1alpha1.DistributedLock {
	s.w.t.Helper()
	s.w.Eventually(func() int64 {
		if l := s.lock(lock); l != nil && l.Status.StartedAt != nil {
			return l.Status.FencingToken
		}
		return 0
	}, within, look).Should(BeNumerically(">", before), func() string { return describe(s.lock(lock)) })
	return s.holds(lock)
}

// reads returns a condition of a lock as one line.
func (s *side) reads(lock, condition string) string {
	l := s.lock(lock)
	if l == nil {
		return "no such lock"
	}
	c := meta.FindStatusCondition(l.Status.Conditions, condition)
	if c == nil {
		return "no such condition"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// says waits for a condition of a lock, described by its beginning.
func (s *side) says(lock, condition, want string) {
	s.w.t.Helper()
	s.w.Eventually(func() string { return s.reads(lock, condition) }, within, look).Should(HavePrefix(want))
}

// gatedOnly waits for n pods of a lock behind their gates, and makes sure for a while that none of the lock's pods starts.
func (s *side) gatedOnly(lock string, n int, during time.Duration) {
	s.w.t.Helper()
	count := func() [2]int {
		var c [2]int
		for _, p := range s.pods(lock) {
			if len(p.Spec.SchedulingGates) == 0 {
				c[1]++
			} else {
				c[0]++
			}
		}
		return c
	}
	s.w.Eventually(count, within, look).Should(Equal([2]int{n, 0}))
	s.w.Consistently(count, during, look).Should(Equal([2]int{n, 0}))
}

// gone waits until a pod's object is gone.
func (s *side) gone(pod string) {
	s.w.t.Helper()
	s.w.Eventually(func() *corev1.Pod { return s.pod(pod) }, within, look).Should(BeNil())
}

// events returns the reasons of a world's Events about locks, with how many there are of each.
func (s *side) events() map[string]int { return s.eventsOn("DistributedLock") }

func (s *side) eventsOn(kind string) map[string]int {
	var list corev1.EventList
	s.w.Expect(s.client.List(s.w.t.Context(), &list, client.InNamespace(s.w.ns))).To(Succeed())
	out := map[string]int{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind {
			out[e.Reason] += max(int(e.Count), 1)
		}
	}
	return out
}

// keyOf is the key of a lock of this world before its status tells.
func (w *world) keyOf(name string) string {
	return "conch:{" + clusterSet + "/" + w.ns + "/" + name + "}"
}

// shortest is the smallest rest of life among keys; a key that is missing counts as none.
func (w *world) shortest(c *redis.Client, keys []string) time.Duration {
	pipe := c.Pipeline()
	replies := make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.PTTL(w.t.Context(), key)
	}
	_, err := pipe.Exec(w.t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	least := time.Hour
	for _, r := range replies {
		least = min(least, r.Val())
	}
	return least
}

// missing is how many of the keys are gone.
func (w *world) missing(c *redis.Client, keys []string) int {
	n, err := c.Exists(w.t.Context(), keys...).Result()
	w.Expect(err).NotTo(HaveOccurred())
	return len(keys) - int(n)
}

func (w *world) keysOf(s *side, locks []string) []string {
	keys := make([]string, len(locks))
	for i, name := range locks {
		keys[i] = w.redisKey(s, name)
	}
	return keys
}

// slowly puts a proxy between a conch and Redis.
func (w *world) slowly() (*proxy.Proxy, func(*rig.Options)) {
	p := proxy.Start(w.t, w.redis.Addr())
	return p, func(o *rig.Options) { o.Redis = p.Addr() }
}

// starts counts the times that a worker of a key began to work.
func (w *world) starts(key string) int {
	entries, err := w.ledger.Entries()
	w.Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, i := range ledger.Intervals(entries) {
		if i.Key == key {
			n++
		}
	}
	return n
}

func onLoss(b lockv1alpha1.BackendLoss) func(*lockv1alpha1.DistributedLockSpec) {
	return func(s *lockv1alpha1.DistributedLockSpec) { s.OnBackendLoss = b }
}

// readsIn matches what conch asks the API server for about single locks of a namespace. Watches and lists are not among it.
func readsIn(ns string) func(cluster.AuditEvent) bool {
	return func(e cluster.AuditEvent) bool {
		return e.User == rig.User && e.Namespace == ns && e.Verb == "get" && e.Resource == "distributedlocks"
	}
}
