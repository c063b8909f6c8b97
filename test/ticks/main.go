// Command ticks has two clusters run the same CronJob, tick after tick, while either's conch is killed and either's Redis is cut off,
// and judges by the ledger of the processes whether each tick was started once at most, whether two ever ran at once, and whether what
// did not run is accounted for. It starts all that it needs and ends by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/conch-dev/conch/test/program"
)

// within bounds one tick on the average, and raising bounds what comes before and after them all.
const (
	within  = 30 * time.Second
	raising = 5 * time.Minute
)

// settings are what one run is like.
type settings struct {
	ticks int
	// seed is where all chance comes from.
	seed uint64
	// period is the time between two ticks, however far apart the minutes are that they stand for. Each cluster comes up to skew later.
	period, skew time.Duration
	// longest is how long a run may take.
	longest time.Duration
	// killEvery is the mean time between two kills, cutEvery that between two cuts of one cluster's Redis, and cutFor how long each lasts.
	killEvery, cutEvery, cutFor time.Duration
	// ttl is the lock's, and extra goes to conch's configuration.
	ttl   time.Duration
	extra string
}

// usual is what `make ticks` runs.
func usual() settings {
	return settings{
		ticks: 200, seed: rand.Uint64N(1_000_000), period: 5 * time.Second, skew: 5 * time.Second, longest: 6 * time.Second,
		killEvery: 20 * time.Second, cutEvery: 10 * time.Second, cutFor: time.Second, ttl: 15 * time.Second,
	}
}

func main() {
	s := usual()
	flag.IntVar(&s.ticks, "n", s.ticks, "how many ticks")
	flag.Uint64Var(&s.seed, "seed", s.seed, "where chance comes from; by default another one each time")
	program.Quiet()
	program.Main("ticks", func(ctx context.Context) error { return run(ctx, s) })
}

func run(ctx context.Context, o settings) error {
	if o.ticks < 1 {
		return fmt.Errorf("-n is %d, want at least 1", o.ticks)
	}
	fmt.Printf("seed %d\n", o.seed)
	ctx, cancel := context.WithTimeout(ctx, raising+time.Duration(o.ticks)*within)
	defer cancel()
	w, err := raise(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	r, err := w.play(ctx)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, w.tail(40))
	}
	for _, line := range r.details {
		fmt.Println(line)
	}
	fmt.Println(r)
	if err := r.verdict(); err != nil {
		return fmt.Errorf("%w\n%s", err, w.tail(60))
	}
	return nil
}
