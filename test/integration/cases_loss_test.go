package integration

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// stolen is what somebody else puts under a key.
const stolen = "somebody else"

// thief takes the key away once, at a moment that a test names by a write of conch, and holds that write up for a while.
type thief struct {
	*world
	once   sync.Once
	struck chan struct{}
	err    error // of the theft; read after struck is closed
	at     func(rig.Write) bool
	wait   time.Duration
	take   func(key string) error
	also   func() error
}

func (th *thief) steal(wr rig.Write) {
	if !th.at(wr) {
		return
	}
	th.once.Do(func() {
		th.err = th.take(th.keyOf("work"))
		if th.err == nil && th.also != nil {
			th.err = th.also()
		}
		if th.wait > 0 {
			<-time.After(th.wait)
		}
		close(th.struck)
	})
}

// theft takes a key, with a client that was made on the test's own goroutine.
func (w *world) theft() func(key string) error {
	c := w.redisClient()
	return func(key string) error { return c.Set(w.t.Context(), key, stolen, 6*time.Second).Err() }
}

// C35: the key is lost at the moments between two steps of a start, when nobody listens for a loss. In the end nobody works
// without the key, and the lock goes on with another tenure.
func TestAKeyThatIsLostBetweenTwoStepsOfAStartIsNoticed(t *testing.T) {
	t.Parallel()
	isStatus := func(wr rig.Write) bool { return wr.Resource == "distributedlocks/status" }
	isGate := func(wr rig.Write) bool { return wr.Resource == "pods" && wr.Method == http.MethodPatch }
	afterGate := func() func(rig.Write) bool { // the hook is called for several writes at a time
		var lifted atomic.Bool
		return func(wr rig.Write) bool {
			if isGate(wr) {
				lifted.Store(true)
			}
			return isStatus(wr) && lifted.Load()
		}
	}
	for name, when := range map[string]struct {
		at       func(rig.Write) bool
		before   bool
		wait     time.Duration
		conflict bool
		started  bool // whether the pod that asked first gets to run at all
	}{
		"after the key was set, before the status names the holder": {
			at: func(wr rig.Write) bool { return isStatus(wr) && wr.N == 2 }, before: true, wait: 3 * time.Second},
		"after the status names the holder, before the gate is lifted": {
			at: func(wr rig.Write) bool { return isStatus(wr) && wr.N == 2 }, wait: 3 * time.Second},
		"between the gate and the status":      {at: isGate, started: true},
		"while the status conflicts":           {at: afterGate(), before: true, conflict: true, started: true},
		"while the first status conflicts":     {at: func(wr rig.Write) bool { return isStatus(wr) && wr.N == 2 }, before: true, wait: 3 * time.Second, conflict: true},
		"while the gate is lifted, and slowly": {at: isGate, wait: 3 * time.Second, started: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			api, via := w.east.through()
			w.east.conch(1, via)
			th := &thief{world: w, struck: make(chan struct{}), at: when.at, wait: when.wait, take: w.theft()}
			if when.conflict {
				th.also = func() error { return w.east.touch("work") }
			}
			if when.before {
				api.Before(th.steal)
			} else {
				api.After(th.steal)
			}
			w.east.newLock("work")
			w.east.exclusive("work", 1)
			w.Eventually(th.struck, within).Should(BeClosed())
			w.Expect(th.err).NotTo(HaveOccurred())
			first := w.east.pods("work")[0]
			c := w.redisClient()
			if when.started {
				w.east.gone(first.Name)
			} else {
				w.Consistently(func() []corev1.PodSchedulingGate { return w.east.pod(first.Name).Spec.SchedulingGates }, 2*time.Second, look).ShouldNot(BeEmpty())
			}
			w.Expect(c.Get(t.Context(), w.keyOf("work")).Val()).To(Equal(stolen))
			w.east.runs("work", 0)
			l := w.east.holds("work")
			w.Expect(c.Get(t.Context(), w.keyOf("work")).Val()).To(Equal(l.Status.Token))
			ledger.Verdict(t, w.ledger)
		})
	}
}

// touch changes a lock, so that a status based on what was before is refused.
func (s *side) touch(lock string) error {
	l := s.lock(lock)
	base := l.DeepCopy()
	l.Annotations = map[string]string{"example.com/touched": strconv.FormatInt(time.Now().UnixNano(), 10)}
	return s.client.Patch(s.w.t.Context(), l, client.MergeFrom(base))
}

// withToken gives a leader's process its fencing token as a file.
func withToken(p *corev1.PodTemplateSpec) {
	p.Spec.Volumes = []corev1.Volume{{Name: "conch", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: "token", FieldRef: &corev1.ObjectFieldSelector{
			FieldPath: "metadata.annotations['" + lockv1alpha1.AnnotationFencingToken + "']",
		}}},
	}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "conch", MountPath: "/etc/conch"}}
}

// C33: a cluster stands still, its leader and its conch with it, and another cluster's leader takes over. The first leader wakes
// before its conch does, writes with the token it was given, and is refused.
func TestALateWriteOfALeaderWhoseClusterStoodStillIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	witness := ledger.StartWitness(t)
	writes := func(p *corev1.PodTemplateSpec) {
		withToken(p)
		p.Spec.Containers[0].Command = []string{w.worker, "leader", "-witness", witness.Addr()}
	}
	east := w.east.conch(1)[0]
	w.west.conch(1)
	w.east.newLock("web", ttl(5))
	w.east.leader("web", 1, writes)
	old := w.east.leads("web")
	held := w.east.holds("web")
	spans := func() []ledger.Span { return witness.Spans("web") }
	by := func(token int64, accepted bool) types.GomegaMatcher {
		return ContainElement(And(HaveField("Token", token), HaveField("Accepted", accepted)))
	}
	w.Eventually(spans, within, look).Should(by(held.Status.FencingToken, true))
	w.west.newLock("web", ttl(5))
	w.west.leader("web", 1, writes)
	w.Eventually(func() string { return describe(w.west.lock("web")) }, within, look).Should(HavePrefix("Waiting by " + w.east.id()))

	w.Expect(east.Pause()).To(Succeed())
	w.east.agent.Pause(old.Name)
	next := w.west.holds("web")
	w.Expect(next.Status.FencingToken).To(BeNumerically(">", held.Status.FencingToken))
	w.Eventually(spans, within, look).Should(by(next.Status.FencingToken, true))
	w.east.agent.Resume(old.Name)
	w.Eventually(spans, within, look).Should(by(held.Status.FencingToken, false))
	w.Expect(east.Resume()).To(Succeed())
	w.east.gone(old.Name)
	w.Eventually(func() string { return describe(w.east.lock("web")) }, within, look).Should(HavePrefix("Waiting by " + w.west.id()))
	ledger.Verdict(t, witness)
}
