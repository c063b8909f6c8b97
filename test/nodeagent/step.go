package nodeagent

import (
	"context"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step brings the pod as far as it can go now, and says when to look again; 0 means when something happens.
func (w *worker) step(ctx context.Context, now time.Time) time.Duration {
	boot, on := w.node.boot()
	switch {
	case w.pod == nil || w.finished:
		return 0
	case !on:
		w.signalAll(syscall.SIGKILL)
		return 0
	case w.stop != nil && !now.Before(w.stop.begin):
		return w.stepStop(now)
	}
	again := w.stepRun(ctx, now, boot)
	if w.stop != nil && w.stop.begin.After(now) { // it was not noticed yet
		again = sooner(again, w.stop.begin.Sub(now))
	}
	return again
}

// stepRun starts what is due. It holds back while the knobs say so, and after a boot until the node has heard from the API server.
func (w *worker) stepRun(ctx context.Context, now time.Time, boot string) time.Duration {
	if w.completed() {
		w.orderStop(now, podGrace(w.pod), 0) // for the sidecars; with none it is over at once
		return w.stepStop(now)
	}
	if w.boot != boot {
		if w.node.silent() {
			return 0
		}
		if w.boot != "" && !w.relearn(ctx, now) {
			return retryEvery
		}
		w.boot = boot
		w.forgetInit()
		return w.step(ctx, now)
	}
	if k := w.agent.knobs.of(w.pod); k.neverStart || k.paused {
		return 0
	}
	if err := w.volumes.sync(ctx, w.podView(), w.node); err != nil {
		w.waitFor(err)
		return retryEvery
	}
	return w.startDue(ctx, now)
}

// relearn reads the pod anew, as a kubelet that boots does: it must not start what was deleted while the node was off, even if the watch
// has not told yet.
func (w *worker) relearn(ctx context.Context, now time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	pod, err := w.agent.client.CoreV1().Pods(w.pod.Namespace).Get(ctx, w.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || (err == nil && pod.UID != w.uid):
		w.take(update{gone: true}, now)
	case err != nil:
		return false
	default:
		w.take(update{pod: pod}, now)
	}
	return true
}

// completed tells whether no main container runs or will run again, or an init container failed for good.
func (w *worker) completed() bool {
	policy := w.pod.Spec.RestartPolicy
	over := true
	for _, c := range w.containers {
		ended := c.running == nil && c.terminated != nil && !c.wantsStart(policy)
		switch {
		case c.role == initRole && ended && c.terminated.ExitCode != 0:
			return true
		case c.role == mainRole && !ended:
			over = false
		}
	}
	return over
}

// forgetInit makes init containers run again, as a new sandbox does.
func (w *worker) forgetInit() {
	for _, c := range w.containers {
		if c.role == initRole && c.terminated != nil {
			c.last, c.terminated = c.terminated, nil
			c.waiting.Reason = reasonInitializing
		}
	}
}

// waitFor shows on all containers that never ran why they wait.
func (w *worker) waitFor(err error) {
	for _, c := range w.containers {
		if c.running == nil && c.terminated == nil {
			c.waiting.Message = err.Error()
		}
	}
}

// startDue starts containers in order: an init container holds back what follows until it succeeded, a sidecar until it runs.
func (w *worker) startDue(ctx context.Context, now time.Time) time.Duration {
	var again time.Duration
	for _, c := range w.containers {
		if c.wantsStart(w.pod.Spec.RestartPolicy) {
			again = sooner(again, w.startOne(ctx, c, now))
		}
		done := c.terminated != nil && c.terminated.ExitCode == 0
		switch {
		case c.role == initRole && !done && !w.mainsBegan():
			return again
		case c.role == sidecarRole && c.running == nil && !w.mainsBegan():
			return again
		}
	}
	return again
}

// mainsBegan tells whether initialization is over: init containers do not run again for a main one that crashed.
func (w *worker) mainsBegan() bool {
	for _, c := range w.containers {
		if c.role == mainRole && (c.running != nil || c.terminated != nil) && w.initialized() {
			return true
		}
	}
	return false
}

func (w *worker) initialized() bool {
	for _, c := range w.containers {
		if c.role == initRole && (c.terminated == nil || c.terminated.ExitCode != 0) {
			return false
		}
	}
	return true
}

// startOne starts a container unless it has to wait.
func (w *worker) startOne(ctx context.Context, c *container, now time.Time) time.Duration {
	if wait := c.notBefore.Sub(now); wait > 0 {
		c.waiting = corev1.ContainerStateWaiting{Reason: reasonCrashLoop, Message: "back-off restarting failed container"}
		return wait
	}
	spec, waiting := w.prepare(c)
	if waiting != nil {
		c.waiting = *waiting
		return retryEvery
	}
	if !w.node.started() {
		return 0
	}
	c.run++
	running, err := w.agent.opts.Runtime.Start(spec, func(e Exit) { w.exits <- containerExit{c: c, exit: e} })
	if err != nil {
		w.node.ended()
		c.notStarted(err.Error(), now, w.agent.opts.BackOff, w.agent.opts.MaxBackOff)
		return retryEvery
	}
	c.waiting = corev1.ContainerStateWaiting{}
	c.began(running, now)
	if c.spec.ReadinessProbe != nil {
		w.startProbe(ctx, c, spec)
	}
	return 0
}

// sooner is the earlier of two moments of which 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
