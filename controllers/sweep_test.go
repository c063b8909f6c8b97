package controllers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/google/go-cmp/cmp"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// orders is a Keeper that notes who was abandoned and who was forgotten.
type orders struct {
	Keeper
	abandoned, forgotten []keeper.ID
}

func (o *orders) AbandonFor(id keeper.ID, _ time.Duration)  { o.abandoned = append(o.abandoned, id) }
func (o *orders) Forget(id keeper.ID)                       { o.forgotten = append(o.forgotten, id) }
func (o *orders) State(keeper.ID) (s keeper.State, ok bool) { return s, false }

// term is an Election that decides, in one term.
type term int64

func (term) Deciding() bool { return true }
func (e term) Epoch() int64 { return int64(e) }

const leftOwner = "east/team/Pod/web-0/uid-0/n1"

func passOver(t *testing.T, cached *lockv1alpha1.DistributedLock, stored ...client.Object) (*pass, *orders) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{lockv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := &orders{}
	r := &Reconciler{
		opts: Options{
			APIReader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build(),
			Keepers:   map[string]Keeper{"default": o}, Election: term(1), Cluster: "east",
		},
		memories: newMemories(), index: newKeepIndex(),
	}
	name := types.NamespacedName{Namespace: "team", Name: "nightly"}
	return &pass{
		ctx: t.Context(), r: r, name: name, now: noon, mem: r.memories.of(name), lock: cached, keeper: o,
		terms: terms{key: lock.Key{Name: "east/team/nightly"}, backend: "default", timing: lock.Timing{TTL: time.Minute}},
	}, o
}

// The cache may lag behind a decider that named and started this very owner. Its key must stay: gone
// as a clean end, it would let another cluster start beside it at once.
func TestOnlyWhatTheAPIServerItselfDoesNotNameIsSwept(t *testing.T) {
	t.Parallel()
	lockAt := func(version string) *lockv1alpha1.DistributedLock {
		return &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "lock-1", ResourceVersion: version}}
	}
	recorded := podOf(func(p *corev1.Pod) {
		p.Annotations = map[string]string{lockv1alpha1.AnnotationHolderIdentity: leftOwner}
	})
	other := lockAt("7")
	other.UID = "lock-2"
	tests := map[string]struct {
		stored []client.Object
		swept  bool
	}{
		"an owner that nobody named":                 {[]client.Object{lockAt("7"), podOf()}, true},
		"one whose pod is gone":                      {[]client.Object{lockAt("7")}, true},
		"not while the cache lags behind the status": {[]client.Object{lockAt("8"), podOf()}, false},
		"not when the lock was made anew":            {[]client.Object{other, podOf()}, false},
		"not when the lock is gone":                  {[]client.Object{podOf()}, false},
		"not one whose pod bears its name":           {[]client.Object{lockAt("7"), recorded}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := passOver(t, lockAt("7"), tc.stored...)
			h, _ := parseOwner(leftOwner)
			if err := p.sweep(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			if swept := len(o.abandoned) == 1; swept != tc.swept {
				t.Errorf("swept: %t, want %t", swept, tc.swept)
			}
			if again := p.again > 0; again == tc.swept {
				t.Errorf("another look is asked for: %t", again)
			}
		})
	}
}

// A lock that is deleted and made anew with another key leaves no attempt behind that takes the old one.
func TestAnAttemptForAKeyThatIsNoLongerTheLocksIsCalledOff(t *testing.T) {
	t.Parallel()
	old := keeper.ID{Key: lock.Key{Name: "east/team/old"}, Owner: leftOwner}
	for name, st := range map[string]plan.Status{
		"while nobody holds":            {State: plan.Waiting},
		"though the status has it held": {State: plan.Held, Holder: plan.Holder{Cluster: "east", Owner: leftOwner}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := passOver(t, nil)
			p.status = st
			p.mem.attempt = &attempt{id: old, keeper: "default", epoch: 1}
			p.dropAttempt(t.Context())
			if diff := cmp.Diff([]keeper.ID{old}, o.abandoned); diff != "" {
				t.Error(diff)
			}
			if p.mem.attempt != nil {
				t.Error("the attempt goes on")
			}
		})
	}
}

func TestAHeartbeatCountsFromTheFirstAndAnewAfterAGap(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	before := heartbeat{renewed: at(0), first: at(1), last: at(1)}
	tests := map[string]struct {
		known   bool
		was     heartbeat
		renewed time.Time
		want    heartbeat
	}{
		"what stood there at first counts for nothing": {false, heartbeat{}, at(0), heartbeat{renewed: at(0)}},
		"no new beat":                {true, before, at(0), before},
		"the first beat":             {true, heartbeat{renewed: at(0)}, at(10), heartbeat{renewed: at(10), first: at(30), last: at(30)}},
		"a beat in time":             {true, before, at(10), heartbeat{renewed: at(10), first: at(1), last: at(30)}},
		"a beat after one too many":  {true, before, at(21), heartbeat{renewed: at(21), first: at(30), last: at(30)}},
		"a beat that is late enough": {true, before, at(20), heartbeat{renewed: at(20), first: at(1), last: at(30)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.was.beat(tc.known, tc.renewed, 40*time.Second, at(30))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(heartbeat{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
