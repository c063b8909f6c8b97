// Command demo shows conch at work: two clusters of one clusterSet, one Redis, real pods. It starts
// everything itself, tells what it does, checks what it sees, and ends with `demo: ok (N checks)`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// demoWithin bounds the whole show, builds aside.
const demoWithin = 3 * time.Minute

func main() {
	keep := flag.Bool("keep", false, "leave everything running at the end, until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *keep)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: failed: %v\n", err)
		os.Exit(1)
	}
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
