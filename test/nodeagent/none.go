package nodeagent

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// None pretends to run containers, for tests with more pods than a machine has room for.
type None struct {
	// Life, if set, says how long a container runs by itself and with what code it then exits. No duration: until it is stopped.
	Life func(pod *corev1.Pod, container string) (time.Duration, int32)
	// StopTakes is how long a container takes to obey SIGTERM.
	StopTakes time.Duration
}

var _ Runtime = None{}

// nonePID numbers pretended containers.
var nonePID atomic.Int64

// Real is false: no files, no environment.
func (None) Real() bool { return false }

// Probe always succeeds.
func (None) Probe(context.Context, Container, *corev1.Probe) error { return nil }

// Start pretends to start a container.
func (n None) Start(c Container, exited func(Exit)) (Running, error) {
	p := &pretended{id: nonePID.Add(1), stopTakes: n.StopTakes, exited: exited}
	if n.Life != nil {
		if life, code := n.Life(c.Pod, c.Name); life > 0 {
			p.endAfter(life, Exit{Code: code})
		}
	}
	return p, nil
}

// pretended is a container that exists only in statuses.
type pretended struct {
	id        int64
	stopTakes time.Duration
	exited    func(Exit)

	mu     sync.Mutex // guards the rest
	dead   bool
	frozen bool
	late   *Exit // an end that came while frozen
}

// ID implements Running.
func (p *pretended) ID() string { return fmt.Sprintf("none://%d", p.id) }

// Signal implements Running.
func (p *pretended) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return os.ErrProcessDone
	}
	switch sig {
	case syscall.SIGTERM:
		p.endAfter(p.stopTakes, Exit{})
	case syscall.SIGKILL:
		p.die(Exit{Code: 128 + int32(sig), Signal: int32(sig)})
	case syscall.SIGSTOP:
		p.frozen = true
	case syscall.SIGCONT:
		p.frozen = false
		if p.late != nil {
			p.die(*p.late)
		}
	}
	return nil
}

func (p *pretended) endAfter(d time.Duration, exit Exit) {
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.frozen {
			p.late = &exit
			return
		}
		p.die(exit)
	})
}

// die reports the end once. The caller holds mu.
func (p *pretended) die(exit Exit) {
	if p.dead {
		return
	}
	p.dead = true
	exit.At = time.Now()
	go p.exited(exit)
}
