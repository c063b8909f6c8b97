package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/rig"
)

// names are those of the clusters.
var names = [2]string{"east", "west"}

// site is one cluster, with its own way to Redis.
type site struct {
	*rig.Stage
	w     *world
	index int
	name  string
	link  *proxy.Proxy
	due   chan dueTick
	// made is the CronJob, whose UID its Jobs refer to.
	made *batchv1.CronJob

	mu   sync.Mutex // guards told
	told map[string]told
}

// dueTick is a minute and when it was due.
type dueTick struct {
	minute int
	at     time.Time
}

// runPlan is what chance has in store for a tick: the same run in both clusters, and when each makes its Job.
type runPlan struct {
	takes time.Duration
	exit  int
	skew  [len(names)]time.Duration
}

// planOf draws the run of a minute; it depends on the seed and nothing else.
func (o settings) planOf(minute int) runPlan {
	rnd := rand.New(rand.NewPCG(o.seed, uint64(minute)))
	r := runPlan{takes: time.Duration(1 + rnd.Int64N(int64(o.longest)))}
	if rnd.IntN(10) == 0 {
		r.exit = 1
	}
	for i := range r.skew {
		r.skew[i] = time.Duration(rnd.Int64N(int64(o.skew)))
	}
	return r
}

func (s *site) createCronJob(ctx context.Context) error {
	s.due = make(chan dueTick, behind)
	if err := s.Client.Create(ctx, s.lockObject()); err != nil {
		return fmt.Errorf("create the lock: %w", err)
	}
	s.made = s.cronJob()
	if err := s.Client.Create(ctx, s.made); err != nil {
		return fmt.Errorf("create the CronJob: %w", err)
	}
	return nil
}

// follow makes the Job of each tick when it is due here. As the CronJob controller does under Forbid, it makes none beside one that is
// not over; that one then comes later.
func (s *site) follow(ctx context.Context) error {
	for d := range s.due {
		r := s.w.planOf(d.minute)
		pause(ctx, time.Until(d.at.Add(r.skew[s.index])))
		if err := s.awaitQuiet(ctx); err != nil {
			return fmt.Errorf("%s: before tick %d: %w", s.name, d.minute, err)
		}
		if err := s.Client.Create(ctx, s.job(s.made, d.minute, r)); err != nil {
			return fmt.Errorf("%s: create the Job of tick %d: %w", s.name, d.minute, err)
		}
	}
	return nil
}

// awaitQuiet waits until no Job of this cluster is active. After a while it does not any more: the judge finds what got stuck.
func (s *site) awaitQuiet(ctx context.Context) error {
	for end := time.Now().Add(patience); time.Now().Before(end); pause(ctx, look) {
		var jobs batchv1.JobList
		if err := s.Client.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list Jobs: %w", err)
		}
		if !slices.ContainsFunc(jobs.Items, active) {
			return nil
		}
	}
	return nil
}

func active(j batchv1.Job) bool {
	return !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// told is what the status of a cluster says about a tick.
type told struct {
	outcome, reason, cluster string
}

// final reports whether it is the last word.
func (t told) final() bool {
	return t.outcome == "succeeded" || t.outcome == "failed" || t.outcome == "skipped"
}

// listen notes what the status says, which forgets ticks of long ago.
func (s *site) listen(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, look) {
		l := s.lockObject()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(l), l); err == nil {
			s.note(l.Status.RecentTicks)
		}
	}
}

func (s *site) note(ticks []lockv1alpha1.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range ticks {
		s.told[t.Job] = told{outcome: t.Outcome, reason: t.Reason, cluster: t.Cluster}
	}
}

// heard is what was noted so far, by Job.
func (s *site) heard() map[string]told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.told)
}

// complete reports whether there is a last word about every tick.
func (s *site) complete() bool {
	heard := s.heard()
	return !slices.ContainsFunc(s.w.cron.jobs(), func(job string) bool { return !heard[job].final() })
}
