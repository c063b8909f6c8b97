package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

var errWatchEnded = errors.New("the watch of pods ended")

// news is one event of the watch with the time at which it arrived.
type news struct {
	at    time.Time
	event watch.Event
}

// handovers deletes one holder after the other, as soon as it is ready, and times n handovers.
func (s *stage) handovers(ctx context.Context, n int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	all := make(chan news)
	var reading sync.WaitGroup
	// Times are taken apart from everything else, so that a slow request of this program shortens none.
	reading.Go(func() { stamp(ctx, w, all) })
	defer reading.Wait()
	defer w.Stop()
	defer cancel()
	t := tally{lifted: map[types.UID]bool{}, deleted: map[types.UID]bool{}}
	for len(t.times) < n {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d handovers: %w", len(t.times), n, ctx.Err())
		case e, ok := <-all:
			if !ok {
				return nil, errWatchEnded
			}
			if err := s.hear(ctx, &t, e); err != nil {
				return nil, err
			}
		}
	}
	return t.times, nil
}

// stamp keeps a queue of its own, so that no event waits for its reader.
func stamp(ctx context.Context, w watch.Interface, to chan<- news) {
	defer close(to)
	var queue []news
	in := w.ResultChan()
	for in != nil || len(queue) > 0 {
		var out chan<- news
		var first news
		if len(queue) > 0 {
			out, first = to, queue[0]
		}
		select {
		case <-ctx.Done():
			return
		case e, ok := <-in:
			if !ok {
				in = nil
				continue
			}
			queue = append(queue, news{time.Now(), e})
		case out <- first:
			queue = queue[1:]
		}
	}
}

// tally is what the watch has shown so far.
type tally struct {
	holder  types.UID
	died    time.Time // zero while the holder lives
	lifted  map[types.UID]bool
	deleted map[types.UID]bool
	times   []time.Duration
}

func (s *stage) hear(ctx context.Context, t *tally, n news) error {
	pod, ok := n.event.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("%w: %v", errWatchEnded, n.event.Object)
	}
	if err := t.note(n.at, pod, n.event.Type == watch.Deleted); err != nil {
		return err
	}
	if pod.UID != t.holder || !ready(pod) || t.deleted[pod.UID] {
		return nil
	}
	t.deleted[pod.UID] = true
	if err := s.Client.Delete(ctx, pod); err != nil {
		return fmt.Errorf("delete the holder: %w", err)
	}
	return nil
}

// note takes the time of a death or of a start. A start before the death would be worse than a slow one.
func (t *tally) note(at time.Time, pod *corev1.Pod, gone bool) error {
	switch {
	case pod.UID == t.holder:
		if t.died.IsZero() && (gone || dead(pod)) {
			t.died = at
		}
	case gone || gated(pod) || t.lifted[pod.UID]:
	case t.holder != "" && t.died.IsZero():
		return fmt.Errorf("the gate of %s was lifted before the holder was confirmed dead", pod.Name)
	default:
		if t.holder != "" {
			t.times = append(t.times, at.Sub(t.died))
		}
		t.holder, t.died, t.lifted[pod.UID] = pod.UID, time.Time{}, true
	}
	return nil
}

func gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == lockv1alpha1.GateLock })
}

// dead is what conch takes for a death too: every container terminated, in a pod that does not start them again.
func dead(pod *corev1.Pod) bool {
	final := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return final && len(pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}
