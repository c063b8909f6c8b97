package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// logTail is how much of a program's log an error quotes.
const logTail = 2048

// process is one running child in a process group of its own.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed once the child is reaped
}

// startProcess runs binaries/name and appends its output to dir/name.log, and to tee unless that is nil.
func startProcess(binaries, dir, name string, args []string, tee io.Writer) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	p.cmd = exec.Command(filepath.Join(binaries, name), args...)
	p.cmd.Stdout = file
	if tee != nil {
		p.cmd.Stdout = io.MultiWriter(file, tee)
	}
	p.cmd.Stderr = p.cmd.Stdout
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go p.run(file, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run starts the child and waits for it on one thread, because the kernel sends the parent-death signal when the *thread* that forked
// ends, not the process.
func (p *process) run(file *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer func() { _ = file.Close() }()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait()
	}
}

// exited tells whether the child has ended.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal reaches the whole process group, and nothing once the child was reaped and its number may belong to another.
func (p *process) signal(sig syscall.Signal) error {
	if p.exited() {
		return fmt.Errorf("signal %s: %w", p.name, os.ErrProcessDone)
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// kill ends the child and waits until it is reaped.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// tail returns the end of the log, for errors.
func (p *process) tail() string {
	raw, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(raw[max(0, len(raw)-logTail):]))
}

// lostPort tells whether the child ended because another process took its port first.
func (p *process) lostPort() bool {
	return p.exited() && strings.Contains(p.tail(), "address already in use")
}
