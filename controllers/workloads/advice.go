package workloads

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning

	// waits and check are the actions of Events: what conch does meanwhile, or what somebody should do.
	waits = "Wait"
	check = "Check"
)

// advice is what the owner of a workload should know, with what to write.
type advice struct {
	severity, reason, action, text string
}

// told remembers what Events have said already, by the workload's UID, so that each cause is told once for
// as long as it is there.
type told struct {
	mu sync.Mutex // guards of
	of map[types.NamespacedName]telling
}

type telling struct {
	uid  types.UID
	said map[advice]struct{}
}

func newTold() *told { return &told{of: map[types.NamespacedName]telling{}} }

// fresh returns what has not been said before, and forgets what is no longer true.
func (t *told) fresh(name types.NamespacedName, uid types.UID, all []advice) []advice {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.of[name]
	now := telling{uid: uid, said: map[advice]struct{}{}}
	var out []advice
	for _, a := range all {
		if _, said := before.said[a]; !said || before.uid != uid {
			out = append(out, a)
		}
		now.said[a] = struct{}{}
	}
	if len(now.said) == 0 {
		delete(t.of, name)
	} else {
		t.of[name] = now
	}
	return out
}

func (t *told) forget(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, name)
}

// tell sends what is new.
func (r *Reconciler) tell(name types.NamespacedName, s *subject, all []advice) {
	for _, a := range r.told.fresh(name, s.object.GetUID(), all) {
		r.event(s, a)
	}
}

func (r *Reconciler) event(s *subject, a advice) {
	r.opts.Recorder.Eventf(s.object, nil, a.severity, a.reason, a.action, "%s", a.text)
}
