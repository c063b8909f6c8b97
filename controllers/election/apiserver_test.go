package election_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/conch-dev/conch/controllers/election"
	"github.com/conch-dev/conch/test/cluster"
)

const (
	duration = 3 * time.Second
	deadline = 2 * time.Second
	period   = 400 * time.Millisecond
	// slack is what a busy machine may add.
	slack = 3 * time.Second
)

func quick(o *election.Options) {
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = duration, deadline, period
}

// wire is one replica's connection to a real API server. Cut, it is what a killed process leaves.
type wire struct {
	next http.RoundTripper
	cut  atomic.Bool
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, errAway
	}
	return w.next.RoundTrip(r)
}

func dial(t *testing.T, c *cluster.Cluster, namespace string) (election.Leases, *wire) {
	t.Helper()
	w := &wire{}
	cfg := c.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { w.next = next; return w })
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client.CoordinationV1().Leases(namespace), w
}

// await polls in real time, as there is nothing that a real server could be asked to wait for.
func await(t *testing.T, within time.Duration, cond func() bool) time.Duration {
	t.Helper()
	begin, tick := time.Now(), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if <-tick.C; time.Since(begin) > within {
			t.Fatalf("did not happen within %s", within)
		}
	}
	return time.Since(begin)
}

func TestARealAPIServerGivesTheLeaseOfAKilledDeciderToTheOther(t *testing.T) {
	t.Parallel()
	east, _ := clusters.Start(t)
	ns := cluster.Namespace(t, east)
	leasesA, wireA := dial(t, east, ns)
	leasesB, _ := dial(t, east, ns)
	a := start(t, leasesA, "a", quick)
	await(t, slack, a.Deciding)
	b := start(t, leasesB, "b", quick)
	wireA.cut.Store(true)
	took := await(t, duration+slack, func() bool {
		if a.Deciding() && b.Deciding() {
			t.Fatal("both decide")
		}
		return b.Deciding()
	})
	t.Logf("killed to replaced: %s with a lease of %s", took.Round(time.Millisecond), duration)
	got, err := leasesB.Get(t.Context(), "conch", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *got.Spec.HolderIdentity != "b" || got.Annotations[election.AnnotationDeciders] != "b,a" {
		t.Errorf("the Lease says %q after %q", *got.Spec.HolderIdentity, got.Annotations[election.AnnotationDeciders])
	}
}

func TestARealAPIServerGivesAReleasedLeaseToTheOtherAtOnce(t *testing.T) {
	t.Parallel()
	_, west := clusters.Start(t)
	ns := cluster.Namespace(t, west)
	leasesA, _ := dial(t, west, ns)
	leasesB, _ := dial(t, west, ns)
	a := start(t, leasesA, "a")
	await(t, slack, a.Deciding)
	b := start(t, leasesB, "b")
	a.stop()
	took := await(t, slack, b.Deciding)
	t.Logf("released to replaced: %s with default timings", took.Round(time.Millisecond))
}

func TestAnAPIServerThatStopsAndReturnsLeavesOneDecider(t *testing.T) {
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "election"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	ns := cluster.Namespace(t, c)
	leases, _ := dial(t, c, ns)
	a := start(t, leases, "a", quick)
	await(t, slack, a.Deciding)
	c.StopAPIServer()
	took := await(t, deadline+slack, func() bool { return !a.Deciding() })
	between(t, "the loss", took, 0, deadline+period)
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, deadline+slack, a.Deciding)
	if err := c.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	await(t, deadline+slack, func() bool { return !a.Deciding() })
	if err := c.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	took = await(t, deadline+slack, a.Deciding)
	t.Logf("API server back to deciding: %s", took.Round(time.Millisecond))
}
