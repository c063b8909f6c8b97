package nodeagent

import (
	"path"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// knobs are the faults that tests ask for, by pod name. A name is a pattern of path.Match, so that pods of a Deployment can be named
// before they exist: web-*.
type knobs struct {
	mu         sync.Mutex // guards the rest
	paused     map[string]bool
	neverStart map[string]bool
	slowStop   map[string]time.Duration
}

func newKnobs() *knobs {
	return &knobs{paused: map[string]bool{}, neverStart: map[string]bool{}, slowStop: map[string]time.Duration{}}
}

// podKnobs is what holds for one pod.
type podKnobs struct {
	paused     bool
	neverStart bool
	slowStop   time.Duration
}

func (k *knobs) of(pod *corev1.Pod) podKnobs {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found podKnobs
	for pattern := range k.paused {
		found.paused = found.paused || matches(pattern, pod)
	}
	for pattern := range k.neverStart {
		found.neverStart = found.neverStart || matches(pattern, pod)
	}
	for pattern, d := range k.slowStop {
		if matches(pattern, pod) {
			found.slowStop = max(found.slowStop, d)
		}
	}
	return found
}

func matches(pattern string, pod *corev1.Pod) bool {
	ok, _ := path.Match(pattern, pod.Name)
	return ok
}

func (k *knobs) set(change func(*knobs)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(k)
}

// Pause freezes the processes of the pods of that name, as SIGSTOP does; pods that come later do not start. It returns when they stand.
func (a *Agent) Pause(pod string) {
	a.knobs.set(func(k *knobs) { k.paused[pod] = true })
	a.applyPauses()
}

// Resume undoes Pause of the same name.
func (a *Agent) Resume(pod string) {
	a.knobs.set(func(k *knobs) { delete(k.paused, pod) })
	a.applyPauses()
}

func (a *Agent) applyPauses() {
	for _, w := range a.all() {
		w.do(w.applyPause)
	}
	a.changes.fire()
}

// SlowStop makes the node notice the deletion of pods of that name later by d: they outlive their grace by as much. No duration undoes it.
func (a *Agent) SlowStop(pod string, d time.Duration) {
	a.knobs.set(func(k *knobs) { k.slowStop[pod] = d })
	a.changes.fire()
}

// NeverStart leaves pods of that name in ContainerCreating. It has no effect on containers that run.
func (a *Agent) NeverStart(pod string) {
	a.knobs.set(func(k *knobs) { k.neverStart[pod] = true })
	a.changes.fire()
}

// MayStart undoes NeverStart of the same name.
func (a *Agent) MayStart(pod string) {
	a.knobs.set(func(k *knobs) { delete(k.neverStart, pod) })
	a.changes.fire()
}
