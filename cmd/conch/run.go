package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
)

const (
	// controllersWithin bounds the end of the controllers, before the Lease is given back.
	controllersWithin = 8 * time.Second
	// exitWithin bounds the whole end: a replica that hangs must be gone before it is killed, and
	// before the others believe that it is.
	exitWithin = 15 * time.Second
)

// run runs conch until ctx ends. Parts end in the order in which they depend on each other:
//
//	first   controllers        nothing is decided any more
//	then    election, guard    the Lease is given back, the next replica decides
//	last    keepers            everything held is renewed once more, nothing is released
func run(ctx context.Context, o options) error {
	log := ctrl.LoggerFrom(ctx)
	s, err := settings.Load(o.config)
	if err != nil {
		return err
	}
	redisnode.RedirectLog(func(message string) { log.V(1).Info("The Redis client reports", "message", message) })
	log.Info("Starting", "version", version, "config", o.config, "summary", summary(s))
	process, err := buildProcess(ctx, o, s)
	if err != nil || ctx.Err() != nil {
		return err
	}
	defer process.stores.close(log)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own := context.WithoutCancel(ctx)
	keepers := startGroup(own, cancel, process.stores.tasks())
	deciders := startGroup(own, cancel, process.tasks())
	defer limitEnd(ctx)()

	err = process.manager.Start(ctx)
	if err == nil {
		deciders.stop()
	} else {
		// Something may still run that believes it decides: the Lease has to run out by itself.
		log.Error(err, "The controllers did not end well, keeping the Lease")
	}
	keepers.stop()
	log.Info("Ended")
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// limitEnd exits hard when the end of the process, which begins with that of ctx, takes too long. The
// function that it returns calls that off.
func limitEnd(ctx context.Context) (ended func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(exitWithin):
			ctrl.LoggerFrom(ctx).Info("Ending took too long, exiting hard", "limit", exitWithin.String())
			os.Exit(exitFailed)
		}
	})
	return func() {
		stop()
		close(done)
	}
}

// newNonce tells this process from every other, its own restart included.
func newNonce() (string, error) {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make a name for this process: %w", err)
	}
	return hex.EncodeToString(b), nil
}
