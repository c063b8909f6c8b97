package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// scene is one thing that the demo shows. It fails with what it saw instead.
type scene struct {
	title string
	play  func(context.Context, *stage) error
	// realRedis scenes need a server whose data and clock are its own.
	realRedis bool
}

// story is what the demo tells, in order.
func story() []scene {
	return []scene{
		{title: "The same CronJob is applied to both clusters; what becomes of it is the last scene", play: cronJobApplied},
		{title: "A leader is elected: all pods run, one carries the label", play: leaderElected},
		{title: "The leader is killed: the next one leads after its confirmed death", play: leaderKilled},
		{title: "An exclusive pod runs; its standby waits as SchedulingGated, on no node", play: exclusiveRuns},
		{title: "Both Deployments are rolled: the leader's", play: leaderRolled},
		{title: "... and the exclusive one: its new revision is handed over to, and never do two pods run", play: exclusiveRolled},
		{title: "The other cluster wants the same lock, and waits", play: otherClusterWaits},
		{title: "conch's decider is killed with SIGKILL: the lock is kept, no pod is touched", play: deciderKilled},
		{title: "The holding cluster's pods are deleted for good: the other cluster takes over", play: takeover},
		{title: "Redis is emptied under a running holder: it stays, its fencing token goes up", play: redisEmptied, realRedis: true},
		{title: "The CronJob's runs: each happens in one of the clusters, and is skipped in the other", play: ticksShared},
	}
}

// play runs the story and counts what was checked.
func play(ctx context.Context, s *stage) (int, error) {
	for i, sc := range story() {
		fmt.Printf("\n%d. %s\n", i+1, sc.title)
		if sc.realRedis && !s.redis.real() {
			fmt.Println("   left out: it needs redis-server, and this is miniredis")
			continue
		}
		if err := sc.play(ctx, s); err != nil {
			return s.checks, fmt.Errorf("scene %d, %s: %w", i+1, sc.title, err)
		}
	}
	return s.checks, nil
}

func leaderElected(ctx context.Context, s *stage) error {
	if err := s.east.Apply(ctx, s.lock("mailer", ""), s.deployment("mailer", "leader", 2)); err != nil {
		return err
	}
	if err := s.until(ctx, "a leader", func() error { return s.leads(ctx, "mailer", "") }); err != nil {
		return err
	}
	return s.show(ctx, s.east)
}

func leaderKilled(ctx context.Context, s *stage) error {
	old, before, err := s.holder(ctx, s.east, "mailer")
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.east.Kubectl(ctx, "-n", namespace, "delete", "pod", old, "--wait=false"); err != nil {
		return err
	}
	if err := s.until(ctx, "another leader", func() error { return s.leads(ctx, "mailer", old) }); err != nil {
		return err
	}
	fmt.Printf("   %s leads no more; the next one leads %s after the deletion was asked for\n", old, time.Since(start).Round(time.Millisecond))
	_, after, err := s.holder(ctx, s.east, "mailer")
	if err != nil {
		return err
	}
	if err := s.check(after > before, "the fencing token went up: %d, then %d", before, after); err != nil {
		return err
	}
	return s.show(ctx, s.east)
}

func exclusiveRuns(ctx context.Context, s *stage) error {
	if err := s.east.Apply(ctx, s.lock("reports", "15s"), s.deployment("reports", "exclusive", 2)); err != nil {
		return err
	}
	if err := s.until(ctx, "one running and one gated pod", func() error { return s.pods(ctx, s.east, "reports", 1, 1) }); err != nil {
		return err
	}
	out, err := s.east.Kubectl(ctx, "-n", namespace, "get", "pods", "-l", "app=reports")
	if err != nil {
		return err
	}
	s.quote("kubectl get pods -l app=reports", out)
	return s.check(strings.Count(out, "SchedulingGated") == 1, "exactly one pod shows SchedulingGated")
}

func otherClusterWaits(ctx context.Context, s *stage) error {
	if err := s.west.Apply(ctx, s.lock("reports", "15s"), s.deployment("reports", "exclusive", 1)); err != nil {
		return err
	}
	if err := s.until(ctx, "the west to see the east hold", func() error {
		return s.field(ctx, s.west, "reports", "{.status.state} {.status.holder.cluster}", "Waiting east")
	}); err != nil {
		return err
	}
	if err := s.until(ctx, "its pod to wait", func() error { return s.pods(ctx, s.west, "reports", 0, 1) }); err != nil {
		return err
	}
	return s.show(ctx, s.west)
}

func deciderKilled(ctx context.Context, s *stage) error {
	holder, token, err := s.holder(ctx, s.east, "reports")
	if err != nil {
		return err
	}
	dead, err := s.killDecider(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("   killed %s\n", dead)
	start := time.Now()
	if err := s.until(ctx, "another decider", func() error { return s.decides(ctx, dead) }); err != nil {
		return err
	}
	fmt.Printf("   the other replica decides after %s\n", time.Since(start).Round(time.Second))
	if err := s.pods(ctx, s.east, "reports", 1, anyNumber); err != nil {
		return err
	}
	now, same, err := s.holder(ctx, s.east, "reports")
	if err != nil {
		return err
	}
	return s.check(now == holder && same == token, "%s still holds, with fencing token %d", now, same)
}

func takeover(ctx context.Context, s *stage) error {
	_, before, err := s.holder(ctx, s.east, "reports")
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.east.Kubectl(ctx, "-n", namespace, "delete", "deployment", "reports", "--wait=false"); err != nil {
		return err
	}
	if err := s.until(ctx, "the west to run", func() error { return s.pods(ctx, s.west, "reports", 1, 0) }); err != nil {
		return err
	}
	fmt.Printf("   the west runs %s after the deletion was asked for\n", time.Since(start).Round(time.Millisecond))
	_, after, err := s.holder(ctx, s.west, "reports")
	if err != nil {
		return err
	}
	if err := s.check(after > before, "the fencing token went up: %d, then %d", before, after); err != nil {
		return err
	}
	return s.show(ctx, s.west)
}

func redisEmptied(ctx context.Context, s *stage) error {
	holder, before, err := s.holder(ctx, s.west, "reports")
	if err != nil {
		return err
	}
	if err := s.redis.flush(ctx); err != nil {
		return err
	}
	var after int64
	if err := s.until(ctx, "a higher fencing token", func() error {
		if _, after, err = s.holder(ctx, s.west, "reports"); err != nil {
			return err
		}
		if after <= before {
			return fmt.Errorf("the fencing token is still %d", after)
		}
		return nil
	}); err != nil {
		return err
	}
	now, _, err := s.holder(ctx, s.west, "reports")
	if err != nil {
		return err
	}
	if err := s.check(now == holder, "%s runs on; its fencing token went from %d to %d", now, before, after); err != nil {
		return err
	}
	return s.show(ctx, s.west)
}
