package nodeagent

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kubeletConditions are the pod conditions that a kubelet owns; the others are kept as they are.
var kubeletConditions = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
}

// status is what the worker has to say: the parts of PodStatus that a kubelet owns.
func (w *worker) status(now time.Time) corev1.PodStatus {
	var s corev1.PodStatus
	for _, c := range w.containers {
		if c.role == mainRole {
			s.ContainerStatuses = append(s.ContainerStatuses, c.status())
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, c.status())
		}
	}
	start := seconds(w.startTime)
	s.StartTime, s.ObservedGeneration = &start, w.pod.Generation
	s.HostIP, s.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	if w.began() {
		s.PodIP, s.PodIPs = w.ip, []corev1.PodIP{{IP: w.ip}}
	}
	s.Phase = w.phase()
	s.Conditions = w.conditions(s.Phase, now)
	return s
}

// began tells whether any container ever ran.
func (w *worker) began() bool {
	return slices.ContainsFunc(w.containers, func(c *container) bool { return c.run > 0 || c.restarts > 0 })
}

// phase follows the kubelet's getPhase: sidecars do not count once they ran.
func (w *worker) phase() corev1.PodPhase {
	var waiting, running, stopped, succeeded, restarting int
	for _, c := range w.containers {
		switch {
		case c.role == mainRole && c.running != nil, c.role == sidecarRole && c.running != nil:
			running++
		case c.role == mainRole && c.terminated == nil:
			waiting++
		case c.role == mainRole:
			stopped++
			if c.terminated.ExitCode == 0 {
				succeeded++
			}
			if c.wantsStart(w.pod.Spec.RestartPolicy) {
				restarting++
			}
		}
	}
	switch {
	case w.initFailed():
		return corev1.PodFailed
	case w.finished && (!w.initialized() || waiting > 0):
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || (restarting > 0 && !w.finished):
		return corev1.PodRunning
	case stopped == succeeded:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}

// initFailed tells whether an init container failed and will not run again.
func (w *worker) initFailed() bool {
	return slices.ContainsFunc(w.containers, func(c *container) bool {
		return c.role == initRole && c.running == nil && c.terminated != nil && c.terminated.ExitCode != 0 && !c.wantsStart(w.pod.Spec.RestartPolicy)
	})
}

func (w *worker) conditions(phase corev1.PodPhase, now time.Time) []corev1.PodCondition {
	done := phase == corev1.PodSucceeded || phase == corev1.PodFailed
	unready := ""
	switch {
	case phase == corev1.PodSucceeded:
		unready = "PodCompleted"
	case phase == corev1.PodFailed:
		unready = "PodFailed"
	case slices.ContainsFunc(w.containers, func(c *container) bool { return c.role != initRole && !(c.running != nil && c.ready) }):
		unready = "ContainersNotReady"
	}
	initialized := ""
	if !w.initialized() && phase != corev1.PodSucceeded {
		initialized = "ContainersNotInitialized"
	}
	sandbox := ""
	if !w.began() || done {
		sandbox = "SandboxNotReady" // the kubelet gives no reason; the status is what counts
	}
	ready := unready
	if ready == "" && !w.gatesOpen() {
		ready = "ReadinessGatesNotReady"
	}
	at := seconds(now)
	var all []corev1.PodCondition
	for i, reason := range []string{sandbox, initialized, ready, unready, ""} {
		c := corev1.PodCondition{Type: kubeletConditions[i], Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: w.pod.Generation}
		if reason != "" {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
		all = append(all, c)
	}
	return all
}

// gatesOpen tells whether the pod's own readiness gates let it be Ready.
func (w *worker) gatesOpen() bool {
	for _, gate := range w.pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(w.pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			return false
		}
	}
	return true
}

// merged lays a worker's status over the one in the API: conditions of others stay, transition times stay where the status did, and no
// terminal phase is left.
func merged(seen, own corev1.PodStatus) corev1.PodStatus {
	m := *seen.DeepCopy()
	if m.Phase != corev1.PodSucceeded && m.Phase != corev1.PodFailed {
		m.Phase = own.Phase
	}
	m.ContainerStatuses, m.InitContainerStatuses = own.ContainerStatuses, own.InitContainerStatuses
	m.StartTime, m.ObservedGeneration = own.StartTime, own.ObservedGeneration
	m.HostIP, m.HostIPs = own.HostIP, own.HostIPs
	if own.PodIP != "" {
		m.PodIP, m.PodIPs = own.PodIP, own.PodIPs
	}
	for _, c := range own.Conditions {
		i := slices.IndexFunc(m.Conditions, func(old corev1.PodCondition) bool { return old.Type == c.Type })
		if i < 0 {
			m.Conditions = append(m.Conditions, c)
			continue
		}
		if m.Conditions[i].Status == c.Status {
			c.LastTransitionTime = m.Conditions[i].LastTransitionTime
		}
		m.Conditions[i] = c
	}
	return m
}
