package history

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conch-dev/conch/test/ledger"
)

func (t *tormentor) start() error {
	log, err := os.OpenFile(filepath.Join(t.dir, t.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	t.process = exec.Command(t.command[0], append(t.command[1:], "-name", t.name)...)
	t.process.Stdout, t.process.Stderr = log, log
	t.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", t.name, err)
	}
	process, exited := t.process, make(chan struct{})
	t.exited = exited
	go func() {
		defer close(exited)
		_ = process.Wait()
		t.ledger.Exited(process.Process.Pid)
	}()
	return nil
}

// pause returns when every thread stands still. Until then the process may have worked, so its
// interval in the ledger ends there.
func (t *tormentor) pause() error {
	pid := t.process.Process.Pid
	p := pause{pid: pid, from: ledger.Now()}
	if err := t.process.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", t.name, err)
	}
	if err := stopped(pid); err != nil {
		return fmt.Errorf("pause %s: %w", t.name, err)
	}
	t.pauses = append(t.pauses, p)
	return t.ledger.Append(ledger.Entry{Kind: ledger.Stop, PID: pid})
}

// stopped waits for the kernel's word that a child is stopped as a whole.
func stopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (t *tormentor) resume() error {
	t.pauses[len(t.pauses)-1].to = ledger.Now()
	return t.process.Process.Signal(syscall.SIGCONT)
}

// kill ends the process if it still runs, paused or not.
func (t *tormentor) kill() {
	_ = t.process.Process.Kill()
	<-t.exited
	if n := len(t.pauses); n > 0 && t.pauses[n-1].to == 0 {
		t.pauses[n-1].to = ledger.Now()
	}
}

// stop lets the contender give back what it holds.
func (t *tormentor) stop() error {
	if err := t.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", t.name, err)
	}
	select {
	case <-t.exited:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("stop %s: it did not end in time", t.name)
	}
	state := t.process.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil // it was started a moment ago, and had not yet asked for signals
	}
	if !state.Success() {
		return fmt.Errorf("%s ended with %s", t.name, state)
	}
	return nil
}
