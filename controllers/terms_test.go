package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/pkg/lock"
)

func ruled(clusterSet string) *Reconciler {
	return &Reconciler{opts: Options{
		Cluster: "east", ClusterSet: clusterSet, Keepers: map[string]Keeper{"default": nil, "other": nil},
		AllowsNamespace: func(ns string) bool { return ns != "closed" },
		AllowsRawKey:    func(_, key string) bool { return strings.HasPrefix(key, "legacy:") },
	}}
}

func lockOf(spec lockv1alpha1.DistributedLockSpec) *lockv1alpha1.DistributedLock {
	return &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly"}, Spec: spec}
}

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestTheKeyStandsInItsScope(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		clusterSet string
		spec       lockv1alpha1.DistributedLockSpec
		want       lock.Key
		shared     bool
	}{
		"a lock of one cluster":                    {"", lockv1alpha1.DistributedLockSpec{}, lock.Key{Name: "east/team/nightly"}, false},
		"a lock of a cluster set":                  {"prod", lockv1alpha1.DistributedLockSpec{}, lock.Key{Name: "prod/team/nightly"}, true},
		"a key of its own":                         {"prod", lockv1alpha1.DistributedLockSpec{Key: "batch"}, lock.Key{Name: "prod/team/batch"}, true},
		"a raw key stands as written":              {"", lockv1alpha1.DistributedLockSpec{RawKey: "legacy:{x}"}, lock.Key{Name: "legacy:{x}", Raw: true}, true},
		"a key with braces is escaped in Redis":    {"", lockv1alpha1.DistributedLockSpec{Key: "a{b}c%"}, lock.Key{Name: "east/team/a{b}c%"}, false},
		"two keys never become one by the escapes": {"", lockv1alpha1.DistributedLockSpec{Key: "a%7Bb"}, lock.Key{Name: "east/team/a%7Bb"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ruled(tc.clusterSet).termsOf(lockOf(tc.spec))
			if diff := cmp.Diff(tc.want, got.key); diff != "" {
				t.Error(diff)
			}
			if got.lock.Shared != tc.shared {
				t.Errorf("shared: %t, want %t", got.lock.Shared, tc.shared)
			}
			if got.lock.HoldOnLoss == tc.shared {
				t.Errorf("holds on loss: %t for a lock that is shared: %t", got.lock.HoldOnLoss, tc.shared)
			}
		})
	}
}

func TestDefaultsDependOnTheTTL(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ttl  *metav1.Duration
		want lock.Timing
	}{
		"no ttl": {nil, lock.Timing{TTL: time.Minute, RenewInterval: 10 * time.Second, FenceGrace: 10 * time.Second, Margin: 5 * time.Second, TakeoverDelay: 25 * time.Second}},
		"the shortest ttl still gives two seconds to stop": {lasting(6 * time.Second), lock.Timing{
			TTL: 6 * time.Second, RenewInterval: time.Second, FenceGrace: 2 * time.Second, Margin: 500 * time.Millisecond, TakeoverDelay: 3500 * time.Millisecond,
		}},
		"a long ttl has a margin of five seconds": {lasting(time.Hour), lock.Timing{
			TTL: time.Hour, RenewInterval: 10 * time.Minute, FenceGrace: 10 * time.Minute, Margin: 5 * time.Second, TakeoverDelay: 20*time.Minute + 5*time.Second,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ruled("").termsOf(lockOf(lockv1alpha1.DistributedLockSpec{TTL: tc.ttl}))
			if diff := cmp.Diff(tc.want, got.timing); diff != "" {
				t.Error(diff)
			}
			if err := got.timing.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}
