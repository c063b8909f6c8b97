package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/conch-dev/conch/test/cluster"
)

const lookEvery = 100 * time.Millisecond

// check counts one thing that was found to be so.
func (s *stage) check(ok bool, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if !ok {
		return fmt.Errorf("not so: %s", what)
	}
	s.checks++
	fmt.Println("   ok:", what)
	return nil
}

// until looks again and again until look finds nothing wrong, and counts as one check.
func (s *stage) until(ctx context.Context, what string, look func() error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			s.checks++
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		case <-tick.C:
		}
	}
}

// leads checks that exactly one running pod bears the leader's label, that it is the holder, and
// that it is not the one named.
func (s *stage) leads(ctx context.Context, lock, not string) error {
	out, err := s.east.Kubectl(ctx, "-n", namespace, "get", "pods", "-l", "conch.dev/role=leader,app="+lock,
		"-o", "jsonpath={range .items[*]}{.metadata.name} {end}")
	if err != nil {
		return err
	}
	leaders := strings.Fields(out)
	if len(leaders) != 1 || leaders[0] == not {
		return fmt.Errorf("leaders: %v", leaders)
	}
	return s.field(ctx, s.east, lock, "{.status.state} {.status.holder.name}", "Held "+leaders[0])
}

// anyNumber of gated pods is fine: a rollout leaves one more of them than there are standbys.
const anyNumber = -1

// pods checks how many pods of an app run, and how many are gated.
func (s *stage) pods(ctx context.Context, c *cluster.Cluster, app string, running, gated int) error {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "pods", "-l", "app="+app, "--no-headers")
	if err != nil {
		return err
	}
	r, g := strings.Count(out, " Running "), strings.Count(out, " SchedulingGated ")
	if r != running || g != gated && gated != anyNumber {
		return fmt.Errorf("%d running and %d gated, not %d and %d:\n%s", r, g, running, gated, out)
	}
	return nil
}

// holder returns the name and the fencing token of a lock's holder.
func (s *stage) holder(ctx context.Context, c *cluster.Cluster, lock string) (string, int64, error) {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "distributedlock", lock, "-o", "jsonpath={.status.holder.name} {.status.fencingToken}")
	if err != nil {
		return "", 0, err
	}
	name, token, ok := strings.Cut(out, " ")
	if !ok || name == "" {
		return "", 0, fmt.Errorf("lock %s has no holder", lock)
	}
	n, err := strconv.ParseInt(token, 10, 64)
	return name, n, err
}

func (s *stage) field(ctx context.Context, c *cluster.Cluster, lock, path, want string) error {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "distributedlock", lock, "-o", "jsonpath="+path)
	if err == nil && out != want {
		err = fmt.Errorf("lock %s: %q, not %q", lock, out, want)
	}
	return err
}

// show prints what a user would see.
func (s *stage) show(ctx context.Context, c *cluster.Cluster) error {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "distributedlocks")
	if err == nil {
		s.quote(c.Name()+": kubectl get distributedlocks", out)
	}
	return err
}

func (s *stage) quote(command, out string) {
	fmt.Println("   $", command)
	for line := range strings.Lines(strings.TrimSpace(out)) {
		fmt.Println("   " + strings.TrimRight(line, "\n"))
	}
}
