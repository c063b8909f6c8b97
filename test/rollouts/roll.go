package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

const (
	// patience is how long the new version may take to hold the lock and run.
	patience = 90 * time.Second
	look     = 100 * time.Millisecond
)

// result sums up a run.
type result struct {
	rollouts, overlaps, stuck int
	details                   []string
}

// String is the line that others parse.
func (r result) String() string {
	return fmt.Sprintf("rollouts: %d rollouts, %d overlaps, %d stuck", r.rollouts, r.overlaps, r.stuck)
}

// tally is how the rollouts of one kind went.
type tally struct {
	kind            kind
	rollouts, stuck int
	took            time.Duration
	err             error
}

// rollAll rolls every kind n times, all kinds side by side.
func (s *stage) rollAll(ctx context.Context, n int) (result, error) {
	all := make([]tally, len(kinds()))
	var wg sync.WaitGroup
	for i, k := range kinds() {
		wg.Go(func() { all[i] = s.rollKind(ctx, k, n) })
	}
	wg.Wait()
	var r result
	var errs []error
	for _, t := range all {
		r.rollouts += t.rollouts
		r.stuck += t.stuck
		r.details = append(r.details, fmt.Sprintf("%-24s %d rollouts, %d stuck, %s each", t.kind.name, t.rollouts, t.stuck,
			(t.took/time.Duration(max(t.rollouts, 1))).Round(time.Millisecond)))
		errs = append(errs, t.err)
	}
	return r, errors.Join(append(errs, s.judge(&r))...)
}

// judge adds what the workers and the watch of leaders have to say.
func (s *stage) judge(r *result) error {
	entries, err := s.ledger.Entries()
	if err != nil {
		return err
	}
	r.overlaps = len(ledger.Overlaps(ledger.Intervals(entries)))
	var wrong []error
	if err := ledger.Check(entries); err != nil {
		wrong = append(wrong, err)
	}
	if err := s.leaders.Check(); err != nil {
		r.overlaps++
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

func (s *stage) rollKind(ctx context.Context, k kind, n int) tally {
	t := tally{kind: k}
	if t.err = s.create(ctx, k); t.err != nil {
		return t
	}
	if t.err = s.holdsVersion(ctx, k, "0"); t.err != nil {
		t.err = fmt.Errorf("%s never ran: %w", k.name, t.err)
		return t
	}
	for i := 1; i <= n; i++ {
		start, to := time.Now(), strconv.Itoa(i)
		if t.err = s.roll(ctx, k, to); t.err != nil {
			return t
		}
		err := s.holdsVersion(ctx, k, to)
		t.rollouts, t.took = t.rollouts+1, t.took+time.Since(start)
		switch {
		case ctx.Err() != nil:
			t.err = fmt.Errorf("%s after %d of %d rollouts: %w", k.name, i, n, ctx.Err())
			return t
		case err != nil:
			t.stuck++
		}
	}
	return t
}

// roll changes the template.
func (s *stage) roll(ctx context.Context, k kind, to string) error {
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, version, to)
	if err := s.Client.Patch(ctx, s.workload(k), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("roll %s: %w", k.name, err)
	}
	return nil
}

// holdsVersion waits until the lock's holder is a running pod of a version.
func (s *stage) holdsVersion(ctx context.Context, k kind, want string) error {
	return wait.PollUntilContextTimeout(ctx, look, patience, true, func(ctx context.Context) (bool, error) {
		var l lockv1alpha1.DistributedLock
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: k.name}, &l); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		h := l.Status.Holder
		if h == nil || l.Status.StartedAt == nil || l.Status.State != lockv1alpha1.StateHeld {
			return false, nil
		}
		if k.mode == lockv1alpha1.SingletonActivePassive {
			return s.allRun(ctx, k, want)
		}
		var pod corev1.Pod
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: h.Name}, &pod); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return pod.UID == h.UID && runsVersion(pod, want), nil
	})
}

// allRun reports whether every replica of a workload runs in a version, and no pod of another one is left.
func (s *stage) allRun(ctx context.Context, k kind, want string) (bool, error) {
	var list corev1.PodList
	if err := s.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(k.selector().MatchLabels)); err != nil {
		return false, err
	}
	other := slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return !runsVersion(p, want) })
	return len(list.Items) == int(k.replicas) && !other, nil
}

func runsVersion(p corev1.Pod, want string) bool {
	return p.Status.Phase == corev1.PodRunning && p.Annotations[version] == want
}
