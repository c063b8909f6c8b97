package scale

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace = "scale"
	clusterID = "east"
	// creators is how many objects are created at once. More only makes the API server queue.
	creators = 16
)

// world is one cluster with pretended containers, one Redis and two replicas of conch.
type world struct {
	*WithT
	t       *testing.T
	cluster *cluster.Cluster
	client  client.Client
	redis   *redisserver.Server
	conchs  []*rig.Conch
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, redis: redisserver.Start(t)}
	var err error
	w.cluster, err = cluster.Start(t.Context(), cluster.Options{Name: "scale"})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.cluster.Stop)
	w.Expect(rig.Install(t.Context(), w.cluster)).To(Succeed())
	w.client, err = client.New(w.cluster.Config(), client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	w.Eventually(func() error {
		return w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	}, time.Minute).Should(Succeed())
	w.startNodes()
	w.startConch()
	return w
}

func (w *world) startNodes() {
	agent, err := nodeagent.New(nodeagent.Options{
		Config: w.cluster.AgentConfig(), Namespace: namespace, Nodes: 10, Runtime: nodeagent.None{},
	})
	w.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := agent.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); run.Wait() })
}

func (w *world) startConch() {
	for i := range 2 {
		c, err := rig.Start(w.t.Context(), rig.Options{
			Cluster: w.cluster, Replica: fmt.Sprintf("conch-%d", i), ClusterID: clusterID, Redis: w.redis.Addr(), Dir: w.t.TempDir(),
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.conchs = append(w.conchs, c)
		w.t.Cleanup(func() { w.end(c) })
	}
	for _, c := range w.conchs {
		w.Expect(c.Ready(w.t.Context())).To(Succeed())
	}
}

// end stops a replica after the test, and shows what it said if the test failed.
func (w *world) end(c *rig.Conch) {
	if err := c.Stop(); err != nil {
		w.t.Errorf("%s did not end cleanly: %v", c.Name, err)
	}
	if w.t.Failed() {
		w.t.Logf("--- %s\n%s", c.Name, c.Tail(40))
	}
}

func name(i int) string { return fmt.Sprintf("job-%04d", i) }

// create makes n locks, each with a pod that wants it.
func (w *world) create(n int, ttl time.Duration) {
	w.t.Helper()
	next, failed := make(chan int), make(chan error, n)
	var work sync.WaitGroup
	for range creators {
		work.Go(func() {
			for i := range next {
				for _, o := range []client.Object{newLock(name(i), ttl), newPod(name(i))} {
					if err := w.client.Create(w.t.Context(), o); err != nil {
						failed <- err
						break
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	close(failed)
	for err := range failed {
		w.t.Error(err)
	}
}

func newLock(name string, ttl time.Duration) *lockv1alpha1.DistributedLock {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	l.Spec.TTL = &metav1.Duration{Duration: ttl}
	return l
}

func newPod(lock string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: lock,
			Labels:      map[string]string{lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonExclusive},
			Annotations: map[string]string{lockv1alpha1.AnnotationLock: lock},
		},
		Spec: corev1.PodSpec{
			SchedulingGates:              []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}},
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "job", Image: "example.com/job:1"}},
		},
	}
}
