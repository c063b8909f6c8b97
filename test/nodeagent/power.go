package nodeagent

import (
	"context"
	"fmt"
	"sync"
	"syscall"

	"github.com/google/uuid"
)

// state is what tests can do to a node.
type state struct {
	mu          sync.Mutex // guards the rest
	partitioned bool
	off         bool
	bootID      string
	running     int // containers alive
}

// silent tells whether the node neither reports nor learns.
func (s *state) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitioned || s.off
}

// boot names the present boot and tells whether the power is on.
func (s *state) boot() (id string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bootID, !s.off
}

// started counts a container in, unless the power is off.
func (s *state) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return false
	}
	s.running++
	return true
}

func (s *state) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

func (s *state) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0
}

func (s *state) set(change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Partition cuts a node off: no heartbeat, no report and no news from the API, while its processes live on.
func (a *Agent) Partition(node string) { a.setNode(node, func(s *state) { s.partitioned = true }) }

// Heal ends a partition.
func (a *Agent) Heal(node string) { a.setNode(node, func(s *state) { s.partitioned = false }) }

func (a *Agent) setNode(node string, change func(*state)) {
	a.mustNode(node).set(change)
	a.changes.fire()
}

// PowerOff kills all processes of a node and silences it. It returns when they are dead.
func (a *Agent) PowerOff(ctx context.Context, node string) error {
	n := a.mustNode(node)
	n.set(func(s *state) { s.off = true })
	for {
		changed := a.changes.wait()
		for _, w := range a.all() {
			if w.node == n {
				w.do(func() { w.signalAll(syscall.SIGKILL) })
			}
		}
		if n.idle() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("power off node %s: %w", node, ctx.Err())
		case <-changed:
		}
	}
}

// PowerOn boots a node that is off: it reports another bootID and restarts what its pods' restartPolicy says. If its Node object is
// gone it registers again.
func (a *Agent) PowerOn(node string) {
	a.setNode(node, func(s *state) { s.off, s.bootID = false, uuid.NewString() })
}

// Reboot is PowerOff and PowerOn.
func (a *Agent) Reboot(ctx context.Context, node string) error {
	if err := a.PowerOff(ctx, node); err != nil {
		return err
	}
	a.PowerOn(node)
	return nil
}
