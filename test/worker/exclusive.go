package main

import (
	"context"
	"os"
	"strconv"

	"github.com/conch-dev/conch/test/ledger"
)

// exclusive notes the start before anything else, and the stop after everything else.
func exclusive(ctx context.Context, o options) error {
	l, err := ledger.Open(o.ledger)
	if err != nil {
		return err
	}
	// A token that is missing or wrong becomes 0, which the ledger's check complains about.
	token, _ := strconv.ParseInt(os.Getenv("CONCH_FENCING_TOKEN"), 10, 64)
	start := ledger.Entry{
		Kind: ledger.Start, PID: os.Getpid(), Key: os.Getenv("CONCH_KEY"), Cluster: os.Getenv("CONCH_CLUSTER"),
		PodUID: os.Getenv("POD_UID"), Pod: os.Getenv("POD_NAME"), Tenure: os.Getenv("CONCH_TENURE"), Token: token,
		Unmanaged: o.unmanaged && token == 0,
	}
	if o.quiet && token == 0 {
		<-ctx.Done()
		return nil
	}
	if err := l.Append(start); err != nil {
		return err
	}
	<-ctx.Done()
	return l.Append(ledger.Entry{Kind: ledger.Stop, PID: os.Getpid()})
}
