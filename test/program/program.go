// Package program is what the programs under test/ begin and end alike.
package program

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Main parses the flags, runs, and exits: with 1 and the reason if run failed. An interrupt ends ctx, so that
// run still takes down what it set up.
func Main(name string, run func(ctx context.Context) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: failed: %v\n", name, err)
		os.Exit(1)
	}
}

// Quiet silences the Kubernetes clients, which complain of watches that end with the node agent; what matters
// comes back as errors.
func Quiet() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}
