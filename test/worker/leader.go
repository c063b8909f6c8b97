package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// lead writes for as long as the file says that this pod leads, and reads the file anew before each write. A refused write is no reason
// to stop: a worker that trusts its file is the one that fencing tokens are made for.
func lead(ctx context.Context, o options) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", o.witness)
	if err != nil {
		return fmt.Errorf("reach the witness: %w", err)
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	writer := os.Getenv("CONCH_CLUSTER") + "/" + os.Getenv("POD_UID")
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		token, leads := readToken(o)
		if !leads {
			continue
		}
		if _, err := fmt.Fprintf(conn, "%s %d %s\n", os.Getenv("CONCH_KEY"), token, writer); err != nil {
			return fmt.Errorf("write to the witness: %w", err)
		}
		if _, err := answers.ReadString('\n'); err != nil {
			return fmt.Errorf("hear the witness: %w", err)
		}
	}
}

// readToken tells whether the files say that this pod leads now, and with what token.
func readToken(o options) (int64, bool) {
	if o.roleFile != "" && read(o.roleFile) != "leader" {
		return 0, false
	}
	token, err := strconv.ParseInt(read(o.tokenFile), 10, 64)
	return token, err == nil && token > 0
}

func read(path string) string {
	raw, err := os.ReadFile(inRoot(path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
