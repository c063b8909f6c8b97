package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conch-dev/conch/controllers/plan"
)

// steadyAfter is how long a restarted container must have run to count as running again. One that
// crashes over and over is ready for a moment each time, if it has no readiness probe.
const steadyAfter = 10 * time.Second

// steadiness returns whether a pod is ready and since when it has been so or not. Unlike the condition
// of the pod it does not take every start of a crashing container for a success. Leaders are chosen by
// the condition itself: one that is not ready for a while has its successor at hand.
func (p *pass) steadiness(pod *corev1.Pod) (bool, time.Time) {
	ready, since := readiness(pod)
	if modeOf(pod) == plan.Leader {
		return ready, since
	}
	if at := steadyAt(pod); ready && p.now.Before(at) {
		ready = false
		if p.steadyAt.IsZero() || at.Before(p.steadyAt) {
			p.steadyAt = at
		}
	}
	first := firstSeen(p.mem.unready, pod.UID, !ready, p.now)
	if !ready && first.Before(since) {
		since = first
	}
	return ready, since
}

// steadyAt is when the newest restart of a container of the pod counts as a success; zero if none was
// restarted.
func steadyAt(pod *corev1.Pod) time.Time {
	var at time.Time
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount == 0 || s.State.Running == nil {
			continue
		}
		if t := s.State.Running.StartedAt.Add(steadyAfter); t.After(at) {
			at = t
		}
	}
	return at
}

// forgetGone drops what is remembered of the readiness of pods that are no candidates any more.
func (p *pass) forgetGone() {
	for uid := range p.mem.unready {
		if p.indexOf(string(uid)) < 0 {
			delete(p.mem.unready, uid)
		}
	}
}
