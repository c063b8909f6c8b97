package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conch-dev/conch/test/ledger"
)

// tormentor runs one contender and torments it: lets it be for a while, then stops it and lets it go
// on, or kills it and starts another.
type tormentor struct {
	command []string
	name    string
	dir     string
	ledger  *ledger.Ledger
	random  *rand.Rand

	process *exec.Cmd
	exited  chan struct{} // closed when the process is dead and the ledger has it
	pauses  []pause
	kills   int
}

// pause is a time in which a process surely did nothing.
type pause struct {
	pid      int
	from, to time.Duration // on the clock of the ledger
}

var errEnded = errors.New("the contender ended by itself")

// run torments until ctx ends, and then asks the contender to end.
func (t *tormentor) run(ctx context.Context) error {
	// The kernel sends the parent-death signal when the thread ends that started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := t.start(); err != nil {
		return err
	}
	defer t.kill()
	for t.rest(ctx, between(t.random, 300*time.Millisecond, 3*time.Second)) {
		if err := t.torment(ctx); err != nil {
			return err
		}
	}
	select {
	case <-t.exited:
		return fmt.Errorf("%s: %w: %s", t.name, errEnded, t.process.ProcessState)
	default:
		return t.stop()
	}
}

func (t *tormentor) torment(ctx context.Context) error {
	kills, asleep := t.random.IntN(3) == 0, t.random.IntN(3) == 0
	length := between(t.random, 20*time.Millisecond, 2*ttl)
	if !kills || asleep {
		if err := t.pause(); err != nil {
			return err
		}
		t.rest(ctx, length)
	}
	if !kills {
		return t.resume()
	}
	t.kill()
	t.kills++
	return t.start()
}

// rest waits, and reports whether to go on.
func (t *tormentor) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.exited:
		return false
	case <-time.After(d):
		return true
	}
}

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

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
