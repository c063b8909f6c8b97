// Package integration tries conch as it is deployed: its binary, as its own service account, on a
// real control plane and a real Redis, with pods that are real processes. What holders did is judged
// by their own ledger, never by what conch says.
package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/nodeagent"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	within = 60 * time.Second
	look   = 50 * time.Millisecond
	// clusterSet is what the clusters of a world share locks in.
	clusterSet = "pair"
)

var (
	clusters  cluster.Pair
	installed sync.Once
	installOK error
	scheme    = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	if err := lockv1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	code := clusters.Around(m).Run()
	rig.Clean()
	os.Exit(code)
}

// world is what one test has to itself: a namespace of one name in both clusters, nodes, a Redis,
// a ledger, and the conchs that it starts.
type world struct {
	*WithT
	t      *testing.T
	ns     string
	redis  *redisserver.Server
	ledger *ledger.Ledger
	worker string
	east   *side
	west   *side
}

// side is one cluster of a world.
type side struct {
	w       *world
	cluster *cluster.Cluster
	client  client.Client
	agent   *nodeagent.Agent
	conchs  []*rig.Conch
	set     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	east, west := clusters.Start(t)
	installed.Do(func() {
		for _, c := range []*cluster.Cluster{east, west} {
			if installOK = rig.Install(context.Background(), c); installOK != nil {
				return
			}
		}
	})
	worker, err := rig.Build(t.Context(), "./test/worker", false)
	w := &world{WithT: NewWithT(t), t: t, ns: "t-" + rand.String(8), redis: redisserver.Start(t), ledger: ledger.New(t), worker: worker}
	w.Expect(installOK).NotTo(HaveOccurred())
	w.Expect(err).NotTo(HaveOccurred())
	w.east, w.west = w.side(east), w.side(west)
	return w
}

func (w *world) side(c *cluster.Cluster) *side {
	cl, err := client.New(c.Config(), client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	s := &side{w: w, cluster: c, client: cl, set: clusterSet}
	w.Expect(cl.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})).To(Succeed())
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = cl.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	})
	w.Eventually(func() error {
		return cl.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "default"}, &corev1.ServiceAccount{})
	}, within, look).Should(Succeed())
	s.startAgent()
	return s
}

func (s *side) startAgent() {
	agent, err := nodeagent.New(nodeagent.Options{
		Config: s.cluster.AgentConfig(), Namespace: s.w.ns, Nodes: 2, Dir: s.w.t.TempDir(),
		Runtime: nodeagent.Processes{OnExit: s.w.ledger.Exited},
	})
	s.w.Expect(err).NotTo(HaveOccurred())
	s.agent = agent
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := agent.Run(ctx); err != nil {
			s.w.t.Error(err)
		}
	})
	s.w.t.Cleanup(func() { cancel(); wg.Wait() })
}

// conch starts n replicas and waits until they are ready.
func (s *side) conch(n int, mods ...func(*rig.Options)) []*rig.Conch {
	s.w.t.Helper()
	var started []*rig.Conch
	for range n {
		o := rig.Options{
			Cluster: s.cluster, Replica: fmt.Sprintf("conch-%d", len(s.conchs)), ClusterID: s.id(), ClusterSet: s.set,
			Redis: s.w.redis.Addr(), Namespaces: []string{s.w.ns}, LeaseName: "conch-" + s.w.ns, Dir: s.w.t.TempDir(),
		}
		for _, mod := range mods {
			mod(&o)
		}
		c, err := rig.Start(s.w.t.Context(), o)
		s.w.Expect(err).NotTo(HaveOccurred())
		s.conchs = append(s.conchs, c)
		started = append(started, c)
		s.w.t.Cleanup(func() { s.end(c) })
	}
	for _, c := range started {
		s.w.Expect(c.Ready(s.w.t.Context())).To(Succeed())
	}
	return started
}

// end stops a replica after the test, and shows what it said if the test failed.
func (s *side) end(c *rig.Conch) {
	_ = c.Resume()
	if c.Alive() {
		if err := c.Stop(); err != nil {
			s.w.t.Errorf("%s did not end cleanly: %v", c.Name, err)
		}
	}
	if s.w.t.Failed() {
		s.w.t.Logf("--- %s\n%s", c.Name, c.Tail(60))
	}
	if strings.Contains(c.Log(), "DATA RACE") {
		s.w.t.Errorf("%s raced:\n%s", c.Name, c.Log())
	}
}

// id is this cluster's identity, one per test, because several conchs share a cluster here.
func (s *side) id() string { return s.cluster.Name() + "-" + s.w.ns }

// decider is the replica that holds conch's Lease.
func (s *side) decider() *rig.Conch {
	s.w.t.Helper()
	var found *rig.Conch
	s.w.Eventually(func() *rig.Conch {
		out, err := s.cluster.Kubectl(s.w.t.Context(), "-n", rig.Namespace, "get", "lease", "conch-"+s.w.ns, "-o", "jsonpath={.spec.holderIdentity}")
		replica, _, _ := strings.Cut(out, "_") // what follows tells a process from its restart
		for _, c := range s.conchs {
			if err == nil && c.Alive() && replica != "" && strings.HasSuffix(c.Name, "-"+replica) {
				found = c
			}
		}
		return found
	}, within, look).ShouldNot(BeNil())
	return found
}

// lock reads a DistributedLock.
func (s *side) lock(name string) *lockv1alpha1.DistributedLock {
	var l lockv1alpha1.DistributedLock
	if err := s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &l); err != nil {
		return nil
	}
	return &l
}

// holder waits until this cluster holds a lock and its holder was started, and returns the lock.
func (s *side) holds(name string) *lockv1alpha1.DistributedLock {
	s.w.t.Helper()
	s.w.Eventually(func() string { return describe(s.lock(name)) }, within, look).Should(HavePrefix("Held by " + s.id() + " started"))
	return s.lock(name)
}

func describe(l *lockv1alpha1.DistributedLock) string {
	if l == nil {
		return "no such lock"
	}
	if l.Status.Holder == nil {
		return string(l.Status.State) + " without holder " + conditionsOf(l)
	}
	started := " not started"
	if l.Status.StartedAt != nil {
		started = " started"
	}
	return fmt.Sprintf("%s by %s%s %s", l.Status.State, l.Status.Holder.Cluster, started, conditionsOf(l))
}

func conditionsOf(l *lockv1alpha1.DistributedLock) string {
	var out []string
	for _, c := range l.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, " ")
}

// pods lists the pods of a lock that are not on their way out.
func (s *side) pods(lock string) []corev1.Pod {
	var list corev1.PodList
	s.w.Expect(s.client.List(s.w.t.Context(), &list, client.InNamespace(s.w.ns), client.MatchingLabels{"app": lock})).To(Succeed())
	return list.Items
}

func (s *side) pod(name string) *corev1.Pod {
	var p corev1.Pod
	if err := s.client.Get(s.w.t.Context(), client.ObjectKey{Namespace: s.w.ns, Name: name}, &p); err != nil {
		return nil
	}
	return &p
}
