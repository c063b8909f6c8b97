package controllers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

const (
	defaultTTL           = 60 * time.Second
	defaultStartDeadline = 5 * time.Minute
	defaultBackend       = "default"
	// shortTTL is below what a workload on a busy cluster can rely on.
	shortTTL = 15 * time.Second
)

// terms are a lock's spec with every default filled in.
type terms struct {
	key     lock.Key
	scope   string
	backend string
	timing  lock.Timing
	lock    plan.Lock
	// refusal is the condition reason behind plan.Lock.Refused.
	refusal string
}

func (t terms) keeperTerms() keeper.Terms {
	return keeper.Terms{TTL: t.timing.TTL, RenewInterval: t.timing.RenewInterval}
}

// settle is what an acquire must wait for. Inside one cluster the end of a holder is confirmed, so
// a lock that no other cluster and no program outside can reach never settles.
func (t terms) settle(cluster string) lock.Settle {
	if !t.lock.Shared {
		return lock.Settle{}
	}
	return lock.Settle{Delay: t.timing.TakeoverDelay, Home: cluster + "/"}
}

// termsOf computes the effective values of a lock.
func (r *Reconciler) termsOf(l *lockv1alpha1.DistributedLock) terms {
	s := l.Spec
	t := r.termsWithoutObject(types.NamespacedName{Namespace: l.Namespace, Name: l.Name})
	if s.Key != "" {
		t.key.Name = t.scope + "/" + l.Namespace + "/" + s.Key
	}
	if s.RawKey != "" {
		t.key, t.lock.Shared = lock.Key{Name: s.RawKey, Raw: true}, true
	}
	if s.Backend != "" {
		t.backend = s.Backend
	}
	t.timing = lock.Timing{
		TTL: orElse(s.TTL, defaultTTL), RenewInterval: orElse(s.RenewInterval, 0), FenceGrace: orElse(s.FenceGrace, 0),
		TakeoverDelay: orElse(s.TakeoverDelay, 0),
	}.WithDefaults()
	t.fill(s)
	t.lock.Gone = l.DeletionTimestamp != nil
	t.lock.ReleaseAsked = fencingToken(l.Annotations[lockv1alpha1.AnnotationRelease])
	t.lock.DeadConfirmed = fencingToken(l.Annotations[lockv1alpha1.AnnotationConfirmDead])
	t.refusal, t.lock.Refused = r.refusal(l, t)
	return t
}

// termsWithoutObject are the defaults for a lock of this name, used where its object is gone.
func (r *Reconciler) termsWithoutObject(name types.NamespacedName) terms {
	t := terms{
		scope: r.opts.Cluster, backend: defaultBackend,
		timing: lock.Timing{TTL: defaultTTL}.WithDefaults(),
	}
	if r.opts.ClusterSet != "" {
		t.scope, t.lock.Shared = r.opts.ClusterSet, true
	}
	t.key = lock.Key{Name: t.scope + "/" + name.Namespace + "/" + name.Name}
	t.fill(lockv1alpha1.DistributedLockSpec{})
	t.lock.Gone = true
	return t
}

// fill copies the spec's rules into what plan decides by.
func (t *terms) fill(s lockv1alpha1.DistributedLockSpec) {
	l := &t.lock
	l.FenceGrace, l.Margin = t.timing.FenceGrace, t.timing.Margin
	l.RenewInterval, l.TakeoverDelay = t.timing.RenewInterval, t.timing.TakeoverDelay
	l.MaxHold, l.StartDeadline = orElse(s.MaxHold, 0), orElse(s.StartDeadline, defaultStartDeadline)
	l.HoldOnLoss = !l.Shared
	if s.OnBackendLoss != "" {
		l.HoldOnLoss = s.OnBackendLoss == lockv1alpha1.BackendLossHold
	}
	l.Demote = s.OnDemote == lockv1alpha1.DemoteDemote
	l.ReleaseLost = s.OnUnreachable == lockv1alpha1.UnreachableRelease
	l.RetryElsewhere = l.Shared && s.RetryElsewhere != nil && *s.RetryElsewhere
}

// refusal names why no candidate may contend for a lock, as a condition reason and a sentence.
func (r *Reconciler) refusal(l *lockv1alpha1.DistributedLock, t terms) (string, string) {
	switch {
	case r.opts.Keepers[t.backend] == nil:
		return lockv1alpha1.ReasonUnknownBackend, fmt.Sprintf("spec.backend %q is not in conch's configuration: name one of its backends", t.backend)
	case !r.opts.AllowsNamespace(l.Namespace):
		return lockv1alpha1.ReasonNamespaceNotAllowed, fmt.Sprintf("namespace %q is not in conch's configuration under namespaces", l.Namespace)
	case l.Spec.RawKey != "" && !r.opts.AllowsRawKey(l.Namespace, l.Spec.RawKey):
		return lockv1alpha1.ReasonKeyNotAllowed, fmt.Sprintf(
			"spec.rawKey %q is not allowed for namespace %q: ask for an entry under rawKeys in conch's configuration", l.Spec.RawKey, l.Namespace)
	}
	if err := t.key.Validate(); err != nil {
		return lockv1alpha1.ReasonKeyNotAllowed, err.Error()
	}
	if err := t.timing.Validate(); err != nil {
		return lockv1alpha1.ReasonInvalidTiming, err.Error()
	}
	return "", ""
}

func orElse(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
