package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
)

const cronJobName = "invoices"

func cronJobApplied(ctx context.Context, s *stage) error {
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		if err := c.Apply(ctx, s.cronJob(cronJobName)); err != nil {
			return err
		}
		if err := s.until(ctx, "its lock in the "+c.Name(), func() error {
			_, err := s.ticks(ctx, c)
			return err
		}); err != nil {
			return err
		}
	}
	fmt.Printf("   conch made the lock cronjob-%s in both; the schedule is every minute\n", cronJobName)
	return nil
}

// ticksShared waits for the first whole minute, and looks at both clusters' records of it.
func ticksShared(ctx context.Context, s *stage) error {
	var ran, skipped lockv1alpha1.Tick
	if err := s.until(ctx, "a run that both clusters have dealt with", func() error {
		east, err := s.ticks(ctx, s.east)
		if err != nil {
			return err
		}
		west, err := s.ticks(ctx, s.west)
		if err != nil {
			return err
		}
		ran, skipped, err = sameRun(east, west)
		return err
	}); err != nil {
		return err
	}
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		out, err := c.Kubectl(ctx, "-n", namespace, "get", "jobs,pods", "-l", "conch.dev/singleton=exclusive,app!=reports", "--no-headers", "--ignore-not-found")
		if err != nil {
			return err
		}
		s.quote(c.Name()+": kubectl get jobs,pods", out)
	}
	return s.check(ran.Outcome == "succeeded" && skipped.Reason == lockv1alpha1.ReasonRunsElsewhere,
		"the run of %s, %s, succeeded in the %s and was skipped in the other cluster", ran.ScheduledAt.UTC().Format(time.TimeOnly), ran.Job, ran.Cluster)
}

// ticks are the runs that a cluster has on record.
func (s *stage) ticks(ctx context.Context, c *cluster.Cluster) ([]lockv1alpha1.Tick, error) {
	out, err := c.Kubectl(ctx, "-n", namespace, "get", "distributedlock", "cronjob-"+cronJobName, "-o", "json")
	if err != nil {
		return nil, err
	}
	var l lockv1alpha1.DistributedLock
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	return l.Status.RecentTicks, nil
}

// sameRun finds a run that one cluster ran to its end and the other one skipped. Two that ran it would be a fault of conch.
func sameRun(east, west []lockv1alpha1.Tick) (ran, skipped lockv1alpha1.Tick, err error) {
	for _, one := range east {
		i := slices.IndexFunc(west, func(t lockv1alpha1.Tick) bool { return t.Job == one.Job })
		switch {
		case i < 0:
		case one.Outcome == "succeeded" && west[i].Outcome == "skipped":
			return one, west[i], nil
		case one.Outcome == "skipped" && west[i].Outcome == "succeeded":
			return west[i], one, nil
		}
	}
	return ran, skipped, errors.New("no run is over in both clusters yet")
}
