package nodeagent

import (
	"context"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retryEvery is how often a worker looks again for what it lacks, a ConfigMap for example.
const retryEvery = 200 * time.Millisecond

// update is news of a pod: as it is now, or that its object is gone.
type update struct {
	pod  *corev1.Pod
	gone bool
}

// containerExit and probeResult come from the goroutines of one run of a container.
type containerExit struct {
	c    *container
	exit Exit
}

type probeResult struct {
	c     *container
	run   int
	ready bool
}

// worker runs one pod. All of its state belongs to the goroutine of run; everything else talks to it through channels.
type worker struct {
	agent    *Agent
	node     *node
	uid      types.UID
	updates  mailbox[update]
	commands chan func()
	exits    chan containerExit
	probes   chan probeResult
	closed   chan struct{} // closed when run returned

	pod        *corev1.Pod // as last seen; nil before the first news
	gone       bool
	boot       string // the boot in which the pod was last seen
	ip         string
	startTime  time.Time
	containers []*container
	volumes    *volumes
	stop       *stopOrder // nil unless the pod has to stop
	finished   bool       // nothing runs and nothing will
	probing    sync.WaitGroup
}

func newWorker(a *Agent, n *node, uid types.UID) *worker {
	return &worker{
		agent: a, node: n, uid: uid, updates: newMailbox[update](), commands: make(chan func()),
		exits: make(chan containerExit), probes: make(chan probeResult), closed: make(chan struct{}),
		volumes: newVolumes(a, filepath.Join(a.dir, string(uid))),
	}
}

// run works until the pod is gone and dead, or ctx ends.
func (w *worker) run(ctx context.Context) {
	reports := newMailbox[report]()
	reporting, stopReporting := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	reporter.Go(func() { w.report(reporting, reports) })
	defer func() {
		stopReporting()
		reporter.Wait()
		w.abandon()
		w.agent.forget(w)
		close(w.closed)
		w.agent.changes.fire()
	}()
	for {
		changed := w.agent.changes.wait()
		again := w.step(ctx, time.Now())
		if w.gone && (w.finished || w.pod == nil) {
			return
		}
		if w.pod != nil {
			reports.put(report{pod: w.pod, status: w.status(time.Now()), finished: w.finished})
		}
		if !w.sleep(ctx, changed, again) {
			return
		}
	}
}

// sleep waits for something to happen and notes it; false means that ctx ended.
func (w *worker) sleep(ctx context.Context, changed <-chan struct{}, again time.Duration) bool {
	var timer <-chan time.Time
	if again > 0 {
		t := time.NewTimer(again)
		defer t.Stop()
		timer = t.C
	}
	news := w.updates
	if w.node.silent() {
		news = nil // it cannot hear
	}
	select {
	case <-ctx.Done():
		return false
	case u := <-news:
		w.take(u, time.Now())
	case e := <-w.exits:
		w.onExit(e)
	case p := <-w.probes:
		if p.run == p.c.run && p.c.running != nil {
			p.c.ready = p.ready
		}
	case command := <-w.commands:
		command()
	case <-changed:
	case <-timer:
	}
	return true
}

// take notes news of the pod.
func (w *worker) take(u update, now time.Time) {
	if u.gone {
		w.gone = true
		if w.pod != nil {
			w.orderStop(now, podGrace(w.pod), w.slowStop())
		}
		return
	}
	if w.pod != nil && !newer(u.pod, w.pod) {
		return
	}
	if w.pod == nil {
		w.containers, w.startTime, w.ip = newContainers(u.pod), now, newPodIP()
		if u.pod.Status.StartTime != nil {
			w.startTime, w.ip = u.pod.Status.StartTime.Time, u.pod.Status.PodIP
		}
		w.finished = terminal(u.pod)
	}
	w.pod = u.pod
	switch {
	case w.pod.DeletionTimestamp != nil:
		w.orderStop(now, deletionGrace(w.pod), w.slowStop())
	case terminal(w.pod):
		w.orderStop(now, podGrace(w.pod), 0)
	}
}

func (w *worker) slowStop() time.Duration { return w.agent.knobs.of(w.pod).slowStop }

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// onExit notes the end of a run.
func (w *worker) onExit(e containerExit) {
	e.c.ended(e.exit, w.agent.opts.BackOff, w.agent.opts.MaxBackOff)
	w.node.ended()
	w.agent.changes.fire() // PowerOff counts
}

// do runs f on the worker's goroutine and returns when it is done, or when the worker has ended.
func (w *worker) do(f func()) {
	done := make(chan struct{})
	select {
	case w.commands <- func() { defer close(done); f() }:
		<-done
	case <-w.closed:
	}
}

func (w *worker) signalAll(sig syscall.Signal) {
	for _, c := range w.containers {
		c.signal(sig)
	}
}

// applyPause brings all processes in line with the knob.
func (w *worker) applyPause() {
	if w.pod == nil {
		return
	}
	paused := w.agent.knobs.of(w.pod).paused
	for _, c := range w.containers {
		switch {
		case c.running == nil || c.paused == paused:
			continue
		case paused:
			c.signal(syscall.SIGSTOP)
		default:
			c.signal(syscall.SIGCONT)
		}
		c.paused = paused
	}
}

// abandon kills what still runs and waits for its death. The API server learns nothing of it.
func (w *worker) abandon() {
	for {
		alive := false
		for _, c := range w.containers {
			if c.stopProbe != nil {
				c.stopProbe()
				c.stopProbe = nil
			}
			if c.running != nil {
				alive = true
				c.signal(syscall.SIGKILL)
			}
		}
		if !alive {
			break
		}
		select {
		case e := <-w.exits:
			w.onExit(e)
		case <-w.probes:
		}
	}
	w.drainProbes()
	w.volumes.remove()
}

// drainProbes waits for probes that are on their way.
func (w *worker) drainProbes() {
	idle := make(chan struct{})
	go func() { w.probing.Wait(); close(idle) }()
	for {
		select {
		case <-w.probes:
		case <-idle:
			return
		}
	}
}
