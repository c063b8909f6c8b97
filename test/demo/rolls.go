package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// leaderRolled rolls the leader's Deployment: its rollout ends the old leader, and one of the new pods leads after that.
func leaderRolled(ctx context.Context, s *stage) error {
	_, before, err := s.holder(ctx, s.east, "mailer")
	if err != nil {
		return err
	}
	if err := s.restart(ctx, "mailer"); err != nil {
		return err
	}
	if err := s.until(ctx, "a leader of the new revision", func() error {
		if err := s.leads(ctx, "mailer", ""); err != nil {
			return err
		}
		return s.newest(ctx, "mailer")
	}); err != nil {
		return err
	}
	return s.rolled(ctx, "mailer", before)
}

// exclusiveRolled rolls the exclusive Deployment: conch hands over to the new revision, and never do two pods run.
func exclusiveRolled(ctx context.Context, s *stage) error {
	_, before, err := s.holder(ctx, s.east, "reports")
	if err != nil {
		return err
	}
	if err := s.restart(ctx, "reports"); err != nil {
		return err
	}
	most := 0
	if err := s.until(ctx, "a holder of the new revision", func() error {
		// A pod that has ended may still be there for a moment, as Terminating.
		out, err := s.east.Kubectl(ctx, "-n", namespace, "get", "pods", "-l", "app=reports",
			"-o", `jsonpath={.items[*].status.containerStatuses[*].state.running.startedAt}`)
		if err != nil {
			return err
		}
		most = max(most, len(strings.Fields(out)))
		return s.newest(ctx, "reports")
	}); err != nil {
		return err
	}
	if err := s.check(most <= 1, "never did two pods run"); err != nil {
		return err
	}
	return s.rolled(ctx, "reports", before)
}

func (s *stage) restart(ctx context.Context, deployment string) error {
	_, err := s.east.Kubectl(ctx, "-n", namespace, "rollout", "restart", "deployment", deployment)
	return err
}

// newest checks that the holder runs and is of the Deployment's newest revision.
func (s *stage) newest(ctx context.Context, app string) error {
	holder, _, err := s.holder(ctx, s.east, app)
	if err != nil {
		return err
	}
	at := `{.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}`
	want, err := s.east.Kubectl(ctx, "-n", namespace, "get", "deployment", app, "-o", "jsonpath={.spec.template"+at[1:])
	if err != nil {
		return err
	}
	got, err := s.east.Kubectl(ctx, "-n", namespace, "get", "pod", holder, "-o", "jsonpath={.status.phase} "+at)
	if err == nil && got != "Running "+want {
		err = fmt.Errorf("%s is %q, not running since %s", holder, got, want)
	}
	return err
}

// rolled checks that the tenure is a new one.
func (s *stage) rolled(ctx context.Context, lock string, before int64) error {
	start := time.Now()
	return s.until(ctx, "the holder to have started", func() error {
		holder, after, err := s.holder(ctx, s.east, lock)
		switch {
		case err != nil:
			return err
		case after <= before:
			return fmt.Errorf("the fencing token is still %d after %s", after, time.Since(start))
		}
		fmt.Printf("   %s of the new revision has it; the fencing token went from %d to %d\n", holder, before, after)
		return nil
	})
}
