// Command demo shows conch at work: two clusters of one clusterSet, one Redis, real pods. It starts
// everything itself, tells what it does, checks what it sees, and ends with `demo: ok (N checks)`.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/conch-dev/conch/test/program"
)

// demoWithin bounds the whole show, builds aside.
const demoWithin = 3 * time.Minute

func main() {
	keep := flag.Bool("keep", false, "leave everything running at the end, until interrupted")
	program.Main("demo", func(ctx context.Context) error { return run(ctx, *keep) })
}

func run(ctx context.Context, keep bool) error {
	if err := build(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	stage, err := raise(bounded)
	if err != nil {
		return err
	}
	defer stage.close()
	checks, err := play(bounded, stage)
	if err != nil {
		stage.explain()
		return err
	}
	if keep {
		stage.invite()
		<-ctx.Done()
	}
	fmt.Printf("demo: ok (%d checks)\n", checks)
	return nil
}
