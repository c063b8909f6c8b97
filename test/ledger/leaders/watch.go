package leaders

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// listRetry is the pause before a list that failed is tried again.
const listRetry = 100 * time.Millisecond

// Start follows the leaders of a namespace for the length of a test. It returns once the watch stands.
func Start(t testing.TB, client kubernetes.Interface, namespace string) *Leaders {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, wait, err := Follow(ctx, client, namespace)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		wait()
	})
	return l
}

// Follow follows the leaders of a namespace until ctx ends; wait returns after that. Follow returns once the watch stands.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string) (l *Leaders, wait func(), err error) {
	l = &Leaders{}
	w, err := l.list(ctx, client, namespace)
	if err != nil {
		return nil, nil, err
	}
	var run sync.WaitGroup
	run.Go(func() { l.follow(ctx, client, namespace, w) })
	return l, run.Wait, nil
}

// list takes a snapshot and begins the watch at it.
func (l *Leaders) list(ctx context.Context, client kubernetes.Interface, namespace string) (*toolswatch.RetryWatcher, error) {
	pods := client.CoreV1().Pods(namespace)
	got, err := pods.List(ctx, metav1.ListOptions{LabelSelector: roleSelector})
	if err != nil {
		return nil, fmt.Errorf("list leaders of %s: %w", namespace, err)
	}
	l.mu.Lock()
	l.snapshot(got.Items, got.ResourceVersion)
	l.mu.Unlock()
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, got.ResourceVersion, &toolscache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = roleSelector
			return pods.Watch(ctx, o)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch leaders of %s: %w", namespace, err)
	}
	return w, nil
}

// follow reads the watch until ctx ends. The watch resumes by itself where it broke; where it cannot, a new list begins.
func (l *Leaders) follow(ctx context.Context, client kubernetes.Interface, namespace string, w *toolswatch.RetryWatcher) {
	for {
		for event := range w.ResultChan() {
			l.note(event)
		}
		<-w.Done()
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		l.gaps++
		l.mu.Unlock()
		for w = nil; w == nil; {
			if w, _ = l.list(ctx, client, namespace); w != nil {
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(listRetry):
			}
		}
	}
}

// note takes one event. A pod that loses the label is a DELETED of this watch, with the resourceVersion of the change.
func (l *Leaders) note(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch event.Type {
	case watch.Added, watch.Modified:
		l.labelled(pod)
	case watch.Deleted:
		l.unlabelled(pod.UID, pod.ResourceVersion)
	}
}
