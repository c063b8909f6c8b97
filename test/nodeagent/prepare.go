package nodeagent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// rootEnv names the directory under which a container finds its volumes.
	rootEnv = "NODEAGENT_ROOT"
	// probeUntilReady is the period of a readiness probe until it first succeeds.
	probeUntilReady = 250 * time.Millisecond
)

// podView is the pod with the status fields that variables and files can refer to.
func (w *worker) podView() *corev1.Pod {
	pod := w.pod.DeepCopy()
	pod.Status.PodIP, pod.Status.PodIPs = w.ip, []corev1.PodIP{{IP: w.ip}}
	pod.Status.HostIP, pod.Status.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	return pod
}

// prepare resolves all that a start needs, or says what is lacking.
func (w *worker) prepare(c *container) (Container, *corev1.ContainerStateWaiting) {
	pod := w.podView()
	spec := Container{Pod: pod, Name: c.spec.Name}
	argv, err := w.argv(c)
	if err != nil {
		return spec, &corev1.ContainerStateWaiting{Reason: reasonPull, Message: err.Error()}
	}
	if !w.agent.opts.Runtime.Real() {
		return spec, nil
	}
	spec.Dir, err = w.volumes.mount(pod, c.spec)
	if err != nil {
		return spec, &corev1.ContainerStateWaiting{Reason: reasonConfig, Message: err.Error()}
	}
	given := variables{{"PATH", os.Getenv("PATH")}, {"HOSTNAME", pod.Name}, {rootEnv, spec.Dir}}
	env, err := w.agent.environment(pod, c.spec, given)
	if err != nil {
		return spec, &corev1.ContainerStateWaiting{Reason: reasonConfig, Message: err.Error()}
	}
	for _, word := range argv {
		spec.Argv = append(spec.Argv, expand(word, env))
	}
	spec.Env = env.list()
	spec.Log = filepath.Join(w.agent.dir, pod.Name+"."+c.spec.Name+".log")
	return spec, nil
}

// argv is command and args, or what the map of images gives for the entrypoint.
func (w *worker) argv(c *container) ([]string, error) {
	entry, known := w.agent.opts.Images[c.spec.Image]
	switch {
	case known && len(entry) == 0:
		return nil, fmt.Errorf("pull image %q: it is known as broken", c.spec.Image)
	case len(c.spec.Command) > 0:
		return slices.Concat(c.spec.Command, c.spec.Args), nil
	case known:
		return slices.Concat(entry, c.spec.Args), nil
	case !w.agent.opts.Runtime.Real():
		return nil, nil
	default:
		return nil, fmt.Errorf("pull image %q: there is no such image, and the container has no command", c.spec.Image)
	}
}

// startProbe tries a container's readiness probe until the run ends.
func (w *worker) startProbe(ctx context.Context, c *container, spec Container) {
	probe := *c.spec.ReadinessProbe
	ctx, c.stopProbe = context.WithCancel(ctx)
	p := prober{worker: w, c: c, run: c.run, spec: spec, probe: &probe}
	w.probing.Go(func() { p.loop(ctx) })
}

// prober tries the probe of one run of a container.
type prober struct {
	worker              *worker
	c                   *container
	run                 int
	spec                Container
	probe               *corev1.Probe
	ready               bool
	failures, successes int32
}

func (p *prober) loop(ctx context.Context) {
	wait := time.Duration(p.probe.InitialDelaySeconds) * time.Second
	for {
		t := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		if p.try(ctx) {
			select {
			case p.worker.probes <- probeResult{c: p.c, run: p.run, ready: p.ready}:
			case <-ctx.Done():
				return
			}
		}
		wait = probeUntilReady
		if p.ready {
			wait = time.Duration(max(p.probe.PeriodSeconds, 1)) * time.Second
		}
	}
}

// try tells whether the verdict changed.
func (p *prober) try(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	if err := p.worker.agent.opts.Runtime.Probe(ctx, p.spec, p.probe); err == nil {
		p.failures, p.successes = 0, p.successes+1
	} else {
		p.failures, p.successes = p.failures+1, 0
	}
	was := p.ready
	switch {
	case p.successes >= max(p.probe.SuccessThreshold, 1):
		p.ready = true
	case p.failures >= max(p.probe.FailureThreshold, 1):
		p.ready = false
	}
	return p.ready != was
}

// newPodIP makes up an address. It has to look real, because EndpointSlices refuse loopback addresses.
func newPodIP() string {
	return fmt.Sprintf("10.%d.%d.%d", 128+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254))
}
