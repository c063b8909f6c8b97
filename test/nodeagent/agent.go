package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	defaultNodes      = 2
	defaultHeartbeat  = time.Second // a quarter of the node grace period of package cluster
	defaultBackOff    = 100 * time.Millisecond
	defaultMaxBackOff = 2 * time.Second
)

// Options say what an agent plays.
type Options struct {
	// Config reaches the cluster, with the rights of cluster-admin.
	Config *rest.Config
	// Namespace whose pods the agent schedules and runs. Empty: all, in which case it must be the only agent of the cluster.
	Namespace string
	// Nodes is how many nodes it has; by default 2. They are called <namespace>-0, <namespace>-1, ...
	Nodes int
	// Runtime runs the containers. By default Processes{}.
	Runtime Runtime
	// Images gives images their entrypoint. A container with a command needs no entry, but an entry without argv cannot be pulled.
	Images map[string][]string
	// Dir keeps volumes and container logs, <pod>.<container>.log, and stays. By default a temporary directory that Run removes.
	Dir string
	// Heartbeat is the pause between two lease renewals of a node. By default 1s.
	Heartbeat time.Duration
	// BackOff is the pause before the second restart of a container; it doubles up to MaxBackOff. By default 100ms and 2s.
	BackOff, MaxBackOff time.Duration
}

// Validate joins all that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.Config == nil {
		errs = append(errs, errors.New("config is missing"))
	}
	if o.Nodes < 0 {
		errs = append(errs, fmt.Errorf("nodes is %d, must not be negative", o.Nodes))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	if o.Runtime == nil {
		o.Runtime = Processes{}
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.BackOff == 0 {
		o.BackOff = defaultBackOff
	}
	if o.MaxBackOff == 0 {
		o.MaxBackOff = defaultMaxBackOff
	}
	return o
}

// Agent is scheduler and kubelets of one namespace.
type Agent struct {
	opts       Options
	name       string
	client     kubernetes.Interface
	nodes      []*node
	nodeWorld  *mirror[*corev1.Node] // its own
	podWorld   *mirror[*corev1.Pod]  // all of the namespace, as are the next two
	configMaps *mirror[*corev1.ConfigMap]
	secrets    *mirror[*corev1.Secret]
	scheduler  *scheduler
	knobs      *knobs
	changes    *changes
	dir        string

	mu      sync.Mutex // guards workers
	workers map[types.UID]*worker
}

// New returns an agent that does nothing before Run.
func New(o Options) (*Agent, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("node agent: %w", err)
	}
	o = o.withDefaults()
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("node agent: make a client: %w", err)
	}
	a := &Agent{opts: o, name: o.Namespace, client: client, knobs: newKnobs(), changes: newChanges(), workers: map[types.UID]*worker{}}
	if a.name == "" {
		a.name = "node"
	}
	core := client.CoreV1().RESTClient()
	a.nodeWorld = newMirror(&corev1.Node{}, core, "nodes", "", agentLabel+"="+a.name)
	a.podWorld = newMirror(&corev1.Pod{}, core, "pods", o.Namespace, "")
	a.configMaps = newMirror(&corev1.ConfigMap{}, core, "configmaps", o.Namespace, "")
	a.secrets = newMirror(&corev1.Secret{}, core, "secrets", o.Namespace, "")
	nodes := corev1listers.NewNodeLister(a.nodeWorld)
	a.scheduler = newScheduler(client, corev1listers.NewPodLister(a.podWorld), nodes)
	for i := range o.Nodes {
		n := &node{name: fmt.Sprintf("%s-%d", a.name, i), agent: a.name, client: client, lister: nodes}
		n.bootID = uuid.NewString()
		a.nodes = append(a.nodes, n)
	}
	return a, nil
}

// Nodes returns the names of the agent's nodes.
func (a *Agent) Nodes() []string {
	names := make([]string, len(a.nodes))
	for i, n := range a.nodes {
		names[i] = n.name
	}
	return names
}

// Run plays until ctx ends. Then it kills all processes, without telling the API server, and removes its Node objects.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.makeDir(); err != nil {
		return err
	}
	var watching, work sync.WaitGroup
	a.follow(ctx, &watching, &work)
	for _, n := range a.nodes {
		work.Go(func() { n.run(ctx, a.changes, a.opts.Heartbeat) })
	}
	for range schedulers {
		work.Go(func() { a.scheduler.run(ctx) })
	}
	<-ctx.Done()
	watching.Wait() // from here on no worker is born
	a.scheduler.queue.ShutDown()
	work.Wait()
	a.leave(context.WithoutCancel(ctx))
	return nil
}

func (a *Agent) makeDir() error {
	var err error
	if a.dir = a.opts.Dir; a.dir == "" {
		a.dir, err = os.MkdirTemp("", "conch-nodes-")
	} else {
		err = os.MkdirAll(a.dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("node agent: make its directory: %w", err)
	}
	return nil
}

func (a *Agent) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	for _, n := range a.nodes {
		n.remove(ctx)
	}
	if a.opts.Dir == "" {
		_ = os.RemoveAll(a.dir)
	}
}

// follow starts the mirrors, that of the pods once those of what pods refer to are filled.
func (a *Agent) follow(ctx context.Context, watching, work *sync.WaitGroup) {
	a.nodeWorld.onSet = func(*corev1.Node) { a.changes.fire() }
	a.configMaps.onSet = func(*corev1.ConfigMap) { a.changes.fire() }
	a.secrets.onSet = func(*corev1.Secret) { a.changes.fire() }
	a.podWorld.onSet = func(pod *corev1.Pod) { a.onPod(ctx, work, pod) }
	a.podWorld.onGone = a.onGone
	watching.Go(func() { a.nodeWorld.run(ctx) })
	needed := []<-chan struct{}{a.nodeWorld.filled}
	if a.opts.Runtime.Real() {
		watching.Go(func() { a.configMaps.run(ctx) })
		watching.Go(func() { a.secrets.run(ctx) })
		needed = append(needed, a.configMaps.filled, a.secrets.filled)
	}
	watching.Go(func() {
		for _, filled := range needed {
			select {
			case <-filled:
			case <-ctx.Done():
				return
			}
		}
		a.podWorld.run(ctx)
	})
}

// onPod hands a pod to the scheduler or to its worker, which it makes for a pod that is new on a node of this agent.
func (a *Agent) onPod(ctx context.Context, work *sync.WaitGroup, pod *corev1.Pod) {
	if wants(pod) {
		a.scheduler.queue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name})
		return
	}
	n := a.nodeNamed(pod.Spec.NodeName)
	if n == nil {
		return
	}
	a.mu.Lock()
	w, found := a.workers[pod.UID]
	if !found {
		w = newWorker(a, n, pod.UID)
		a.workers[pod.UID] = w
	}
	a.mu.Unlock()
	w.updates.put(update{pod: pod})
	if !found {
		work.Go(func() { w.run(ctx) })
	}
}

func (a *Agent) onGone(pod *corev1.Pod) {
	a.mu.Lock()
	w := a.workers[pod.UID]
	a.mu.Unlock()
	if w != nil {
		w.updates.put(update{gone: true})
	}
}

func (a *Agent) forget(w *worker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.workers, w.uid)
}

// all returns the workers of the moment.
func (a *Agent) all() []*worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	ws := make([]*worker, 0, len(a.workers))
	for _, w := range a.workers {
		ws = append(ws, w)
	}
	return ws
}

func (a *Agent) nodeNamed(name string) *node {
	for _, n := range a.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// mustNode is for the knobs, where a wrong name is a mistake in the test.
func (a *Agent) mustNode(name string) *node {
	n := a.nodeNamed(name)
	if n == nil {
		panic(fmt.Sprintf("nodeagent: no node %q, there are %q", name, a.Nodes()))
	}
	return n
}
