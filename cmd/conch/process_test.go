package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	patience = 60 * time.Second
	// quick are timings of the Lease that a test can wait for.
	quick = "timings: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms, unreadyAfter: 2s}\n"
)

var (
	clusters  cluster.Pair
	installed sync.Map // *cluster.Cluster -> func() error
)

// tidy removes the binaries that the tests built.
type tidy struct{ tests cluster.Runner }

// Run runs the tests.
func (c tidy) Run() int {
	defer rig.Clean()
	return c.tests.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(tidy{clusters.Around(m)}) }

func install(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	once, _ := installed.LoadOrStore(c, sync.OnceValue(func() error { return rig.Install(context.Background(), c) }))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
}

// replicas are a number of replicas with one Lease, which several tests may have in one cluster.
type replicas struct {
	t       *testing.T
	options rig.Options
}

func newReplicas(t *testing.T, c *cluster.Cluster, redis, extra string) *replicas {
	t.Helper()
	install(t, c)
	ns := cluster.Namespace(t, c)
	return &replicas{t: t, options: rig.Options{
		Cluster: c, ClusterID: ns, Redis: redis, Namespaces: []string{ns}, LeaseName: ns, Extra: extra, Dir: t.TempDir(),
	}}
}

func (r *replicas) start(name string) *rig.Conch {
	r.t.Helper()
	o := r.options
	o.Replica = name
	c, err := rig.Start(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Log(c.Name + "\n" + c.Tail(40))
		}
		c.Kill()
	})
	return c
}

func (r *replicas) ready(all ...*rig.Conch) {
	r.t.Helper()
	for _, c := range all {
		if err := c.Ready(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// decider is the replica that the Lease names, empty if none or if the API server does not say.
func (r *replicas) decider() string {
	client, err := kubernetes.NewForConfig(r.options.Cluster.Config())
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := client.CoordinationV1().Leases(rig.Namespace).Get(r.t.Context(), r.options.LeaseName, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	return name
}

func (r *replicas) until(what string, cond func() bool) time.Duration {
	r.t.Helper()
	begin, tick := time.Now(), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if <-tick.C; time.Since(begin) > patience {
			r.t.Fatalf("%s: did not happen within %s", what, patience)
		}
	}
	took := time.Since(begin)
	r.t.Logf("%s: %s", what, took.Round(10*time.Millisecond))
	return took
}

func TestTheNextReplicaDecidesWhenTheDeciderEndsAndWhenItIsKilled(t *testing.T) {
	t.Parallel()
	east, _ := clusters.Start(t)
	r := newReplicas(t, east, redisserver.Start(t).Addr(), quick)
	all := map[string]*rig.Conch{"a": r.start("a"), "b": r.start("b")}
	r.ready(all["a"], all["b"])
	first := r.decider()
	other := map[string]string{"a": "b", "b": "a"}[first]
	if other == "" {
		t.Fatalf("the decider is %q", first)
	}
	begin := time.Now()
	if err := all[first].Stop(); err != nil {
		t.Errorf("the end of the decider: %v", err)
	}
	t.Logf("SIGTERM to exit: %s", time.Since(begin).Round(time.Millisecond))
	if took := r.until("ended decider replaced", func() bool { return r.decider() == other }); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	third := r.start("c")
	r.ready(third)
	all[other].Kill()
	r.until("killed decider replaced", func() bool { return r.decider() == "c" })
	if !third.IsReady() {
		t.Error("the last replica is not ready")
	}
}

func TestAWrongPasswordLeavesTheReplicaUnreadyWithOneLineAndNoSecret(t *testing.T) {
	t.Parallel()
	_, west := clusters.Start(t)
	password := filepath.Join(t.TempDir(), "password")
	write := func(secret string) {
		if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("S3cr3t-wrong")
	server := redisserver.Start(t, "--requirepass", "S3cr3t-right")
	r := newReplicas(t, west, "", quick+"backends: {default: {addresses: ['"+server.Addr()+"'], passwordFile: "+password+"}}\n")
	c := r.start("a")
	r.until("the finding is logged", func() bool { return strings.Contains(c.Log(), "backend default ("+server.Addr()+"): WrongPass: ") })
	if c.IsReady() {
		t.Error("the replica is ready")
	}
	write("S3cr3t-right")
	r.ready(c)
	if strings.Contains(c.Log(), "S3cr3t") {
		t.Error("a password is in the log")
	}
}

func TestAnAPIServerThatIsAwayDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "away"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	r := newReplicas(t, c, redisserver.Start(t).Addr(), quick)
	conch := r.start("a")
	r.ready(conch)
	lost := `decides no longer`
	c.StopAPIServer()
	r.until("the right to decide is lost", func() bool { return strings.Contains(conch.Log(), lost) })
	if !conch.Alive() {
		t.Fatal("the process has ended")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until("the replica decides again", func() bool {
		return strings.LastIndex(conch.Log(), `This replica decides"`) > strings.LastIndex(conch.Log(), lost)
	})
	if !conch.Alive() || !conch.IsReady() {
		t.Errorf("alive %t, ready %t", conch.Alive(), conch.IsReady())
	}
}

func TestContendIsTakenUpFromTheFileWithoutARestart(t *testing.T) {
	t.Parallel()
	east, _ := clusters.Start(t)
	r := newReplicas(t, east, redisserver.Start(t).Addr(), "contend: true\n")
	c := r.start("a")
	r.ready(c)
	file := filepath.Join(r.options.Dir, c.Name+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "contend: true", "contend: false", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until("the change is taken up", func() bool {
		return strings.Contains(c.Log(), `"The configuration has changed","contend":false`)
	})
}

func TestTheClusterIsKnownByWhatWasGivenElseItsPropertyElseTheUIDOfKubeSystem(t *testing.T) {
	t.Parallel()
	_, west := clusters.Start(t)
	client, err := kubernetes.NewForConfig(west.Config())
	if err != nil {
		t.Fatal(err)
	}
	system, err := client.CoreV1().Namespaces().Get(t.Context(), systemNamespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(given, want string) {
		t.Helper()
		got, err := clusterIdentity(t.Context(), west.Config(), given)
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	expect("given", "given")
	expect("", string(system.UID))
	apply(t, west, propertyCRD)
	expect("", string(system.UID))
	apply(t, west, strings.ReplaceAll(property, "VALUE", "west.example"))
	expect("", "west.example")
	apply(t, west, strings.ReplaceAll(property, "VALUE", "not/usable"))
	if _, err := clusterIdentity(t.Context(), west.Config(), ""); err == nil || !strings.Contains(err.Error(), "set clusterId") {
		t.Errorf("got %v", err)
	}
	if _, err := west.Kubectl(t.Context(), "delete", "crd", "clusterproperties.about.k8s.io"); err != nil {
		t.Error(err)
	}
	if _, err := clusterIdentity(t.Context(), west.Config(), "a/b"); err == nil {
		t.Error("a given identity with a slash was taken")
	}
}

func apply(t *testing.T, c *cluster.Cluster, yaml string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), "apply", "-f", path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=30s", "crd/clusterproperties.about.k8s.io"); err != nil {
		t.Fatal(err)
	}
}

const propertyCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterproperties.about.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/2149-clusterid"}
spec:
  group: about.k8s.io
  names: {kind: ClusterProperty, plural: clusterproperties, singular: clusterproperty}
  scope: Cluster
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {value: {type: string}}}}
`

const property = `
apiVersion: about.k8s.io/v1beta1
kind: ClusterProperty
metadata: {name: cluster.clusterset.k8s.io}
spec: {value: VALUE}
`
