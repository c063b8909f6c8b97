package nodeagent

import (
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// role is what a container is to its pod.
type role int

const (
	initRole    role = iota // runs to completion before what follows
	sidecarRole             // started in the order of init containers, lives as long as the main ones
	mainRole
)

// Reasons and codes that the kubelet writes.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonPull         = "ErrImagePull"
	reasonConfig       = "CreateContainerConfigError"
	reasonStart        = "StartError"
	reasonCompleted    = "Completed"
	reasonError        = "Error"
	reasonUnknown      = "ContainerStatusUnknown"

	codeStartFailed = 128
	codeLost        = 137
)

// container is what a worker knows of one container. Only its worker's goroutine touches it.
type container struct {
	spec corev1.Container
	role role

	running    Running // nil unless it runs
	run        int     // counts starts, so that a late exit or probe is not taken for the present run's
	startedAt  time.Time
	ready      bool
	stopProbe  func()
	termSent   bool
	killSent   bool
	paused     bool
	waiting    corev1.ContainerStateWaiting
	terminated *corev1.ContainerStateTerminated // how the newest run ended, nil while it runs
	last       *corev1.ContainerStateTerminated // how the run before ended
	restarts   int32
	failures   int       // restarts since it last ran well
	notBefore  time.Time // of the next start
}

// newContainers lists a pod's containers in the order in which they start, with what an earlier agent wrote of them.
func newContainers(pod *corev1.Pod) []*container {
	var all []*container
	for _, spec := range pod.Spec.InitContainers {
		c := &container{spec: spec, role: initRole}
		if spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			c.role = sidecarRole
		}
		all = append(all, c)
	}
	for _, spec := range pod.Spec.Containers {
		all = append(all, &container{spec: spec, role: mainRole})
	}
	for _, c := range all {
		c.waiting.Reason = reasonCreating
		if c.role == mainRole && len(pod.Spec.InitContainers) > 0 {
			c.waiting.Reason = reasonInitializing
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if s.Name == c.spec.Name {
				c.adopt(s)
			}
		}
	}
	return all
}

// adopt takes over a status of which no process is left.
func (c *container) adopt(s corev1.ContainerStatus) {
	c.restarts, c.terminated, c.last = s.RestartCount, s.State.Terminated, s.LastTerminationState.Terminated
	if s.State.Running != nil {
		c.terminated = &corev1.ContainerStateTerminated{
			ExitCode: codeLost, Reason: reasonUnknown, StartedAt: s.State.Running.StartedAt, FinishedAt: seconds(time.Now()), ContainerID: s.ContainerID,
		}
	}
}

// wantsStart tells whether the container has to run (again) under the pod's restartPolicy.
func (c *container) wantsStart(policy corev1.RestartPolicy) bool {
	switch {
	case c.running != nil:
		return false
	case c.terminated == nil || c.role == sidecarRole:
		return true
	case c.role == initRole && c.terminated.ExitCode == 0:
		return false
	case policy == corev1.RestartPolicyNever:
		return false
	default:
		return c.terminated.ExitCode != 0 || policy == corev1.RestartPolicyAlways
	}
}

// began notes a start.
func (c *container) began(r Running, now time.Time) {
	if c.terminated != nil {
		c.last = c.terminated
		c.restarts++
	}
	c.running, c.startedAt, c.terminated = r, now, nil
	c.ready, c.termSent, c.killSent, c.paused = c.spec.ReadinessProbe == nil, false, false, false
}

// ended notes the end of the present run.
func (c *container) ended(e Exit, first, longest time.Duration) {
	reason := reasonCompleted
	if e.Code != 0 {
		reason = reasonError
	}
	c.noteEnd(corev1.ContainerStateTerminated{
		ExitCode: e.Code, Signal: e.Signal, Reason: reason, ContainerID: c.running.ID(), StartedAt: seconds(c.startedAt), FinishedAt: seconds(e.At),
	})
	if e.At.Sub(c.startedAt) > 2*longest {
		c.failures = 0
	}
	c.backOff(e.At, first, longest)
}

// notStarted notes that a start failed, which counts as a run.
func (c *container) notStarted(message string, now time.Time, first, longest time.Duration) {
	if c.terminated != nil {
		c.last = c.terminated
		c.restarts++
	}
	c.noteEnd(corev1.ContainerStateTerminated{
		ExitCode: codeStartFailed, Reason: reasonStart, Message: message, StartedAt: seconds(now), FinishedAt: seconds(now),
	})
	c.failures = max(c.failures, 1)
	c.backOff(now, first, longest)
}

func (c *container) noteEnd(end corev1.ContainerStateTerminated) {
	if c.stopProbe != nil {
		c.stopProbe()
		c.stopProbe = nil
	}
	c.running, c.ready, c.terminated = nil, false, &end
	c.waiting = corev1.ContainerStateWaiting{}
}

// backOff lets the first restart happen at once, and each further one later.
func (c *container) backOff(now time.Time, first, longest time.Duration) {
	c.notBefore = now
	if c.failures > 0 {
		c.notBefore = now.Add(min(longest, first<<min(c.failures-1, 16)))
	}
	c.failures++
}

// signal reaches the container if it runs; that it is dead will be heard otherwise.
func (c *container) signal(sig syscall.Signal) {
	if c.running != nil {
		_ = c.running.Signal(sig)
	}
}

// status is what the API gets to see.
func (c *container) status() corev1.ContainerStatus {
	started := c.running != nil
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, Ready: c.ready, Started: &started, RestartCount: c.restarts,
		LastTerminationState: corev1.ContainerState{Terminated: c.last},
	}
	switch {
	case c.running != nil:
		s.ContainerID = c.running.ID()
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: seconds(c.startedAt)}
	case c.waiting.Reason != "":
		s.State.Waiting = c.waiting.DeepCopy()
		if c.terminated != nil {
			s.LastTerminationState.Terminated = c.terminated
		}
	default:
		s.State.Terminated = c.terminated
		// A finished init container counts as ready, as it does for the kubelet.
		s.Ready = c.role == initRole && c.terminated != nil && c.terminated.ExitCode == 0
	}
	if c.running == nil && c.terminated != nil {
		s.ContainerID = c.terminated.ContainerID
	}
	return s
}

// seconds rounds as the API does, so that what was written equals what is read.
func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
