// Command rollouts rolls workloads of every kind over and over, and judges by their own ledger whether two versions ever worked at
// once. It starts all that it needs and ends by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/conch-dev/conch/test/program"
)

// within bounds the whole run, the build of conch aside.
const within = 30 * time.Minute

func main() {
	n := flag.Int("n", 100, "how many rollouts of each kind")
	program.Quiet()
	program.Main("rollouts", func(ctx context.Context) error { return run(ctx, *n) })
}

func run(ctx context.Context, n int) error {
	if n < 1 {
		return fmt.Errorf("-n is %d, want at least 1", n)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := raise(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.rollAll(ctx, n)
	if err != nil {
		return err
	}
	for _, line := range r.details {
		fmt.Println(line)
	}
	fmt.Println(r)
	if r.overlaps > 0 || r.stuck > 0 {
		return fmt.Errorf("%d overlaps and %d stuck rollouts, want none\n--- conch\n%s", r.overlaps, r.stuck, s.Conch.Tail(40))
	}
	return nil
}
