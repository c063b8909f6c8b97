package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace  = "ticks"
	clusterSet = "pair"
	look       = 200 * time.Millisecond
	// behind is how many ticks a cluster may be behind before the schedule waits for it.
	behind = 3
	// patience is how long a tick may take to be over in a cluster that everything works in again.
	patience = 2 * time.Minute
)

// world is two clusters that share locks, the Redis between them, and what judges.
type world struct {
	settings
	dir    string
	ledger *ledger.Ledger
	redis  *redisserver.Server
	worker string
	sites  []*site
	cron   cron
}

// raise starts everything. The caller closes the world.
func raise(ctx context.Context, o settings) (*world, error) {
	dir, err := os.MkdirTemp("", "conch-ticks-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	w := &world{settings: o, dir: dir, cron: newCron("report", o.ticks)}
	for _, step := range []func(context.Context) error{w.start, w.raiseSites, w.createCronJobs} {
		if err := step(ctx); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *world) start(ctx context.Context) error {
	var err error
	if w.ledger, err = ledger.Open(filepath.Join(w.dir, "ledger")); err != nil {
		return err
	}
	if w.redis, err = redisserver.New(ctx, w.dir); err != nil {
		return err
	}
	w.worker, err = rig.Build(ctx, "./test/worker", false)
	return err
}

func (w *world) raiseSites(ctx context.Context) error {
	errs := make([]error, len(names))
	w.sites = make([]*site, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		link, err := proxy.New(w.redis.Addr())
		if err != nil {
			return err
		}
		s := &site{w: w, index: i, name: name, link: link, told: map[string]told{}}
		w.sites[i] = s
		wg.Go(func() {
			s.Stage, errs[i] = rig.Raise(ctx, rig.StageOptions{
				Name: name, Namespace: namespace, OnExit: w.ledger.Exited, Redis: link.Addr(), ClusterSet: clusterSet, Extra: w.extra,
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *world) createCronJobs(ctx context.Context) error {
	for _, s := range w.sites {
		if err := s.createCronJob(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (w *world) close() {
	for _, s := range w.sites {
		if s == nil {
			continue
		}
		s.link.Heal()
		if s.Stage != nil {
			s.Close()
		}
		s.link.Close()
	}
	if w.redis != nil {
		w.redis.Kill()
	}
	if w.ledger != nil {
		_ = w.ledger.Close()
	}
	_ = os.RemoveAll(w.dir)
}

// tail is the end of what each conch said.
func (w *world) tail(lines int) string {
	var out string
	for _, s := range w.sites {
		out += fmt.Sprintf("--- conch of %s\n%s\n", s.name, s.Conch.Tail(lines))
	}
	return out
}

// play runs the whole schedule under faults, has everything come back, waits for the last word about each tick, and judges.
func (w *world) play(ctx context.Context) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for _, s := range w.sites {
		watching.Go(func() { s.listen(ctx) })
	}
	faults, err := w.runSchedule(ctx)
	if err != nil {
		return result{}, err
	}
	if err := w.awaitVerdicts(ctx); err != nil {
		return result{}, err
	}
	entries, err := w.ledger.Entries()
	if err != nil {
		return result{}, err
	}
	r := judge(w.cron.jobs(), entries, map[string]map[string]told{names[0]: w.sites[0].heard(), names[1]: w.sites[1].heard()})
	r.details = append(r.details, faults)
	return r, nil
}

// runSchedule makes the Jobs of all ticks in both clusters. The faults begin and end with it.
func (w *world) runSchedule(ctx context.Context) (string, error) {
	faulty, heal := context.WithCancel(ctx)
	defer heal()
	f := w.startFaults(faulty)
	var sites sync.WaitGroup
	errs := make([]error, len(w.sites))
	going, stop := context.WithCancel(ctx)
	defer stop()
	for i, s := range w.sites {
		sites.Go(func() {
			if errs[i] = s.follow(going); errs[i] != nil {
				stop()
			}
		})
	}
	w.tick(going)
	sites.Wait()
	heal()
	err := f.end(ctx)
	return f.String(), errors.Join(errors.Join(errs...), err, ctx.Err())
}

// tick is the clock that both clusters go by.
func (w *world) tick(ctx context.Context) {
	for minute := range w.ticks {
		due := time.Now()
		for _, s := range w.sites {
			select {
			case s.due <- dueTick{minute, due}:
			case <-ctx.Done():
			}
		}
		pause(ctx, w.period)
	}
	for _, s := range w.sites {
		close(s.due)
	}
}

// awaitVerdicts waits until both clusters have the last word about each tick. One that never comes is for the judge.
func (w *world) awaitVerdicts(ctx context.Context) error {
	for end := time.Now().Add(patience); time.Now().Before(end); pause(ctx, look) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.sites[0].complete() && w.sites[1].complete() {
			return nil
		}
	}
	return nil
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
