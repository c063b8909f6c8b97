package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/conch-dev/conch/test/proxy"
)

// Where the faults take their chance from; ticks use numbers from zero on.
const (
	killStream = 1 << 32
	cutStream  = 1 << 33
)

// faults are what goes wrong while the ticks run.
type faults struct {
	w       *world
	start   time.Time
	took    time.Duration
	running sync.WaitGroup

	// Written by one goroutine each, and read after it.
	kills [len(names)]int
	cuts  [len(names)]time.Duration
	err   error
}

// startFaults lets things go wrong until ctx ends.
func (w *world) startFaults(ctx context.Context) *faults {
	f := &faults{w: w, start: time.Now()}
	f.running.Go(func() { f.kill(ctx) })
	for _, s := range w.sites {
		f.running.Go(func() { f.cut(ctx, s) })
	}
	return f
}

// end waits for the faults to be over and for what was broken to work.
func (f *faults) end(ctx context.Context) error {
	f.running.Wait()
	f.took = time.Since(f.start)
	errs := []error{f.err}
	for _, s := range f.w.sites {
		errs = append(errs, s.Conch.Ready(ctx))
	}
	return errors.Join(errs...)
}

// String sums up what went wrong.
func (f *faults) String() string {
	line := fmt.Sprintf("%s of faults:", f.took.Round(time.Second))
	for i, name := range names {
		line += fmt.Sprintf(" conch of %s killed %d times, its Redis away for %.0f%%;", name, f.kills[i], 100*f.cuts[i].Seconds()/f.took.Seconds())
	}
	return line[:len(line)-1]
}

// around is a random time of a mean.
func around(rnd *rand.Rand, mean time.Duration) time.Duration {
	return mean/2 + time.Duration(rnd.Int64N(int64(mean)))
}

// kill ends one conch or the other and starts it again, at once or a moment later.
func (f *faults) kill(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(f.w.seed, killStream))
	for pause(ctx, around(rnd, f.w.killEvery)) {
		s := f.w.sites[rnd.IntN(len(f.w.sites))]
		s.Conch.Kill()
		f.kills[s.index]++
		pause(ctx, time.Duration(rnd.Int64N(int64(2*time.Second))))
		if err := s.StartConch(context.WithoutCancel(ctx)); err != nil {
			f.err = err
			return
		}
	}
}

// cut takes a cluster's Redis away for a moment, in one of the ways in which that happens: connections break, cannot be made, or lead
// nowhere, or what was asked for is done and the answer comes late.
func (f *faults) cut(ctx context.Context, s *site) {
	rnd := rand.New(rand.NewPCG(f.w.seed, cutStream+uint64(s.index)))
	modes := []proxy.Mode{proxy.Cut, proxy.Refuse, proxy.BlackHole, proxy.HoldReply}
	for pause(ctx, around(rnd, f.w.cutEvery-f.w.cutFor)) {
		since := time.Now()
		s.link.Set(proxy.Rule{Mode: modes[rnd.IntN(len(modes))]})
		pause(ctx, f.w.cutFor)
		s.link.Heal()
		f.cuts[s.index] += time.Since(since)
	}
}
