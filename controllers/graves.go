package controllers

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// graveKept is how long the last state of a deleted pod is remembered.
const graveKept = time.Hour

// graves remembers the last state of pods as the watch delivered it with their deletion. That
// state is what tells a pod that showed its end from one that was removed by force.
type graves struct {
	mu   sync.Mutex // guards pods
	pods map[types.UID]grave
	now  func() time.Time
}

type grave struct {
	pod *corev1.Pod
	at  time.Time
}

func newGraves(now func() time.Time) *graves {
	return &graves{pods: map[types.UID]grave{}, now: now}
}

// find returns the last state of a pod, nil if its deletion was not witnessed.
func (g *graves) find(uid types.UID) *corev1.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pods[uid].pod
}

// of returns the last states of the pods that match.
func (g *graves) of(match func(*corev1.Pod) bool) []*corev1.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*corev1.Pod
	for _, one := range g.pods {
		if match(one.pod) {
			out = append(out, one.pod)
		}
	}
	return out
}

func (g *graves) bury(pod *corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for uid, old := range g.pods {
		if now.Sub(old.at) > graveKept {
			delete(g.pods, uid)
		}
	}
	g.pods[pod.UID] = grave{pod: pod.DeepCopy(), at: now}
}

// handler feeds the graves from an informer. A deletion that the watch missed arrives as
// DeletedFinalStateUnknown; its state may be old, so it proves nothing and is not buried.
func (g *graves) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			g.bury(pod)
		}
	}}
}
