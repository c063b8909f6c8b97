package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Processes runs each container as a local process in a process group of its own, which dies with the agent's process.
type Processes struct {
	// OnExit, if set, is called when a main process is dead and before anybody can learn of it: its number is not yet free for another
	// process, no status says so. What it records is never later than what follows from the death.
	OnExit func(pid int)
}

var _ Runtime = Processes{}

// Real is true: processes have files.
func (Processes) Real() bool { return true }

// Start starts the process.
func (p Processes) Start(c Container, exited func(Exit)) (Running, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of container %s: %w", c.Name, err)
	}
	l := &localProcess{cmd: exec.Command(c.Argv[0], c.Argv[1:]...), onExit: p.OnExit}
	l.cmd.Env, l.cmd.Dir, l.cmd.Stdout, l.cmd.Stderr = c.Env, c.Dir, log, log
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		defer func() { _ = log.Close() }()
		if l.run(started) {
			exited(l.exit())
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start container %s: %w", c.Name, err)
	}
	return l, nil
}

// localProcess is one main process and its group.
type localProcess struct {
	cmd    *exec.Cmd
	onExit func(pid int)

	mu   sync.Mutex // guards dead: no signal goes to a number that may belong to another
	dead bool
}

// run starts the process and stays until it is reaped, on one thread, because the kernel sends the parent-death signal when the thread
// that forked ends. It returns false if nothing was started.
func (l *localProcess) run(started chan<- error) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := l.cmd.Start()
	started <- err
	if err != nil {
		return false
	}
	l.awaitDeath()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	// What the main process left behind dies with it, as the rest of a container does.
	_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
	if l.onExit != nil {
		l.onExit(l.cmd.Process.Pid)
	}
	_ = l.cmd.Wait()
	return true
}

// awaitDeath returns when the process is a zombie: dead, but with its number still its own.
func (l *localProcess) awaitDeath() {
	for {
		err := unix.Waitid(unix.P_PID, l.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (l *localProcess) exit() Exit {
	status, _ := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Exit{Code: 128 + int32(status.Signal()), Signal: int32(status.Signal()), At: time.Now()}
	}
	return Exit{Code: int32(status.ExitStatus()), At: time.Now()}
}

// ID returns the process number.
func (l *localProcess) ID() string { return "process://" + strconv.Itoa(l.cmd.Process.Pid) }

// Signal implements Running.
func (l *localProcess) Signal(sig syscall.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return os.ErrProcessDone
	}
	pid := l.cmd.Process.Pid
	if sig != syscall.SIGTERM {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

// Probe runs an exec probe in the container's environment, or asks an httpGet probe's port on the loopback address.
func (Processes) Probe(ctx context.Context, c Container, probe *corev1.Probe) error {
	switch {
	case probe.Exec != nil:
		return probeExec(ctx, c, probe.Exec)
	case probe.HTTPGet != nil:
		return probeHTTP(ctx, c, probe.HTTPGet)
	default:
		return errors.New("only exec and httpGet probes are played")
	}
}

func probeExec(ctx context.Context, c Container, action *corev1.ExecAction) error {
	cmd := exec.CommandContext(ctx, action.Command[0], action.Command[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	return cmd.Run()
}

func probeHTTP(ctx context.Context, c Container, action *corev1.HTTPGetAction) error {
	host := action.Host
	if host == "" {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(portOf(c, action))) + action.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true // no connection outlives its probe
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}

// portOf resolves a named port; an unknown name gives 0, which answers nothing.
func portOf(c Container, action *corev1.HTTPGetAction) int {
	if n := action.Port.IntValue(); n != 0 {
		return n
	}
	for _, spec := range c.Pod.Spec.Containers {
		for _, p := range spec.Ports {
			if spec.Name == c.Name && p.Name == action.Port.StrVal {
				return int(p.ContainerPort)
			}
		}
	}
	return 0
}
