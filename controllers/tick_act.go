package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// actTicks carries out one effect about a run, where the pass had none about the lock, and asks for
// another pass if there are more. What has no effect can be noted in any case.
func (p *pass) actTicks(ctx context.Context, dec plan.Decision) error {
	spent := dec.Action.Kind != plan.NoAction
	for _, run := range p.ticks {
		switch {
		case run.dec.Kind == plan.NoTickAction:
			run.done = true
		case spent || !p.r.opts.Election.Deciding():
			p.again = atOnce
		default:
			spent, run.done = true, true
			if err := p.actTick(ctx, run); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) actTick(ctx context.Context, run *tickRun) error {
	ctrl.LoggerFrom(ctx).V(1).Info("Acting on a tick", "action", string(run.dec.Kind), "stage", string(run.dec.Stage), "effect", string(run.dec.Effect.Kind),
		"job", run.snap.Job.Name, "reason", string(run.dec.Reason), "key", run.key.String(), "token", run.snap.Store.Token)
	switch run.dec.Kind {
	case plan.Run:
		return p.runAlone(ctx, run)
	case plan.DeleteJob:
		return p.deleteJob(ctx, run)
	}
	if p.keeper == nil {
		return nil
	}
	p.orderTick(run)
	return nil
}

// orderTick gives the keeper an order about a run; none of them waits for the store.
func (p *pass) orderTick(run *tickRun) {
	id := p.tickID(run)
	switch run.dec.Kind {
	case plan.Claim:
		p.claim(run)
	case plan.Unclaim:
		p.keeper.Release(id, lock.Leave{})
	case plan.PutBack:
		p.keeper.Release(id, lock.Leave{PutBack: true})
	case plan.Stamp:
		p.keeper.Stamp(id, lock.Stage(run.dec.Stage))
	case plan.Drop:
		p.dropTick(run.uid)
		p.again = atOnce
	}
}

// claim has the keeper ask for a run's tick, or go on asking by other rules.
func (p *pass) claim(run *tickRun) {
	id, retry := p.tickID(run), run.snap.Retries()
	p.mem.ticks[run.uid] = tickEntry{id: id, keeper: p.terms.backend, epoch: p.r.opts.Election.Epoch(), retry: retry}
	p.r.index.set(id, p.name)
	p.keeper.Acquire(keeper.Want{Terms: p.terms.keeperTerms(), Request: lock.Request{
		Key: id.Key, Owner: id.Owner, TTL: p.terms.timing.TTL, Floor: floorOf(p.status),
		Settle: p.terms.settle(p.r.opts.Cluster), Ordered: run.snap.Policy != plan.Allow, Retry: retry,
	}})
}

// runAlone carries out an effect on a Job that runs under its tick alone: as for the holder of a lock,
// but with the tick as its key.
func (p *pass) runAlone(ctx context.Context, run *tickRun) error {
	step := *p
	step.terms.key = run.key
	snap := plan.Snapshot{Status: run.dec.Status, Store: plan.Store{ValidUntil: run.snap.Store.ValidUntil}}
	err := step.act(ctx, snap, plan.Decision{Action: run.dec.Effect, Reason: run.dec.Reason})
	p.again = step.again
	return err
}

// deleteJob removes a Job that will not run. Suspended as it is it has no pods; what is left of earlier
// ones goes with it.
func (p *pass) deleteJob(ctx context.Context, run *tickRun) error {
	if run.job == nil {
		return nil
	}
	err := p.r.opts.Client.Delete(ctx, run.job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: ptr.To(run.job.UID), ResourceVersion: ptr.To(run.job.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s: %w", run.job.Name, err)
	}
	return nil
}

// noteStart remembers that this process resumed a Job, so that it can tell whether anything of it ever ran.
func (p *pass) noteStart(a plan.Action) {
	if a.Kind == plan.Start && a.Target.Kind == plan.KindJob {
		p.mem.unseen[types.UID(a.Target.UID)] = true
	}
}

// ranOnce reports whether a container of the pod was ever started.
func ranOnce(pod *corev1.Pod) bool {
	for _, s := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		ended := s.State.Terminated
		if s.State.Running != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0 || ended != nil && !ended.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// nextTick is the sooner of a revisit and what the runs ask for.
func (p *pass) nextTick(revisit time.Duration) time.Duration {
	for _, run := range p.ticks {
		if in := run.dec.Revisit; in > 0 && (revisit == 0 || in < revisit) {
			revisit = in
		}
	}
	return revisit
}
