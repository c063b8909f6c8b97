package redisserver

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one running child.
type process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed once the child is reaped
}

// run starts the server; what it says before it has a log of its own goes to the same file.
func run(args []string, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(binary, args...), log: file, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.live(started)
	return p, <-started
}

// live starts the child and waits for it on one thread, because the kernel sends the parent-death signal when the thread that forked
// ends, not the process.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer func() { _ = p.log.Close() }()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait()
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
