package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"time"

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

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
