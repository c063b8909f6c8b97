package nodeagent

import (
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minGrace is the kubelet's: nothing gets less than 2 seconds (kuberuntime, minimumGracePeriodInSeconds).
const minGrace = 2 * time.Second

// stopOrder says when stopping begins and when it turns to SIGKILL.
type stopOrder struct {
	begin    time.Time
	deadline time.Time
}

// orderStop notes that the pod has to stop. A later order can only shorten.
func (w *worker) orderStop(now time.Time, grace, late time.Duration) {
	order := stopOrder{begin: now.Add(late)}
	if w.stop != nil {
		order.begin = w.stop.begin
	}
	order.deadline = later(now, order.begin).Add(max(grace, minGrace))
	if w.stop != nil && w.stop.deadline.Before(order.deadline) {
		order.deadline = w.stop.deadline
	}
	w.stop = &order
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// podGrace is the grace that the pod asks for itself.
func podGrace(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}

// deletionGrace is the grace that the deletion gave. A force delete writes 0 for an instant and then removes the object. A kubelet that
// sees the 0 kills at once, one that sees only the object gone gives the pod's own grace: the agent is the second, whoever waits for a
// death has to be prepared for it.
func deletionGrace(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds == 0 {
		return podGrace(pod)
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

// stepStop stops main and init containers, then the sidecars, the last first.
func (w *worker) stepStop(now time.Time) time.Duration {
	overdue := !now.Before(w.stop.deadline)
	alive := 0
	for _, c := range w.containers {
		if c.running != nil && c.role != sidecarRole {
			alive++
			c.end(overdue)
		}
	}
	for _, c := range slices.Backward(w.containers) {
		if c.running != nil && c.role == sidecarRole && (alive == 0 || overdue) {
			alive++
			c.end(overdue)
		}
	}
	switch {
	case alive == 0:
		w.finish()
		return 0
	case overdue:
		return 0
	default:
		return w.stop.deadline.Sub(now)
	}
}

// end asks a container to stop, or makes it.
func (c *container) end(overdue bool) {
	switch {
	case overdue && !c.killSent:
		c.killSent = true
		c.signal(syscall.SIGKILL)
	case !overdue && !c.termSent:
		c.termSent = true
		c.signal(syscall.SIGTERM)
	}
}

// finish gives each container the final state that the kubelet would write. Those that never ran are lost, except while the pod was still
// initializing: then the ones that were not reached keep waiting.
func (w *worker) finish() {
	w.finished = true
	lost := func(c *container) {
		c.waiting = corev1.ContainerStateWaiting{}
		if c.terminated == nil {
			c.terminated = &corev1.ContainerStateTerminated{
				ExitCode: codeLost, Reason: reasonUnknown, Message: "The container could not be located when the pod was terminated",
			}
		}
	}
	initialized := w.initialized()
	for i, c := range w.containers {
		began := c.terminated != nil
		first := i == 0 && c.role != mainRole
		if began || first || (initialized && c.role == mainRole) {
			lost(c)
		}
	}
}
