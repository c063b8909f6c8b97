package nodeagent

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// readyWithin is generous: many agents may start at once on few cores.
const readyWithin = time.Minute

// Start runs an agent for the length of a test. It returns once all nodes take pods.
func Start(t testing.TB, o Options) *Agent {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	if !a.awaitReady(t.Context()) {
		t.Fatalf("the nodes %q are not ready after %s", a.Nodes(), readyWithin)
	}
	return a
}

// awaitReady tells whether all nodes came to take pods in time.
func (a *Agent) awaitReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		changed := a.changes.wait()
		open := 0
		for _, obj := range a.nodeWorld.List() {
			if n := obj.(*corev1.Node); readyNode(n) && tolerated(klog.FromContext(ctx), &corev1.Pod{}, n) {
				open++
			}
		}
		if open == len(a.nodes) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}
