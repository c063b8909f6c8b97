package election

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// releaseWithin bounds the last write of a replica that ends.
	releaseWithin = 2 * time.Second
	// releaseTries allows for a last write that was cut off and went through all the same.
	releaseTries = 2
)

// Run contends for the Lease, renews it, and gives it back when ctx ends. Whatever may not run
// without the right to decide must have ended before ctx does.
func (e *Election) Run(ctx context.Context) error {
	l := &loop{e: e, log: logr.FromContextOrDiscard(ctx).WithName("election").WithValues("identity", e.opts.Identity)}
	defer l.leave(context.WithoutCancel(ctx))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.kick:
		case <-timer.C:
		}
		timer.Reset(l.step(ctx))
	}
}

// loop is what the goroutine of Run knows.
type loop struct {
	e   *Election
	log logr.Logger
	// lease is the newest version that was read or written; nil if it is not known to be current.
	lease *coordinationv1.Lease
	seen  observation
	// missing is when the Lease was first found not to exist; zero while it does.
	missing time.Time
	// patience is until when a contender waits after the API server was away: a holder that lives
	// could not renew either, and gets the first chance.
	patience time.Time
	// left is the term that this replica gave up; a later one means that another had its chance.
	left int64
	// failing is set while requests fail, so that only the first failure of a row is an error.
	failing bool
	// reported and epoch are what the log said last.
	reported bool
	epoch    int64
}

// step does what is due and returns how long to wait for the next one.
func (l *loop) step(ctx context.Context) time.Duration {
	defer l.report()
	if !l.mine() {
		if err := l.read(ctx); err != nil {
			return l.failed(ctx, "Reading the Lease", err)
		}
	}
	if err := l.write(ctx); err != nil {
		return l.failed(ctx, "Writing the Lease", err)
	}
	l.failing = false
	return l.pause()
}

// read learns what the Lease says. One that does not exist leaves lease nil.
func (l *loop) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.callTimeout())
	defer cancel()
	got, err := l.e.opts.Leases.Get(ctx, l.e.opts.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		got = nil
	}
	l.take(got)
	if l.others(l.seen.record) {
		l.e.withdraw()
	}
	return nil
}

func (l *loop) mine() bool { return l.lease != nil && recordOf(l.lease).holder == l.e.opts.Identity }

func (l *loop) others(r record) bool { return r.holder != "" && r.holder != l.e.opts.Identity }

func (l *loop) take(lease *coordinationv1.Lease) {
	l.lease = lease
	switch {
	case lease != nil:
		l.missing = time.Time{}
	case l.missing.IsZero():
		l.missing = l.e.now()
	}
	l.seen = l.seen.see(lease, l.e.now())
	r := l.seen.record
	if l.others(r) || l.left != 0 && r.transitions > l.left {
		l.left = 0
		l.e.hadChance()
	}
}

// write makes the one write that is due, if any.
func (l *loop) write(ctx context.Context) error {
	switch mine := l.mine(); {
	case mine && l.e.paused():
		return l.release(ctx)
	case !l.e.paused() && (mine || l.due()):
		return l.hold(ctx)
	default:
		return nil
	}
}

// due reports whether a contender may take the Lease now.
func (l *loop) due() bool {
	now := l.e.now()
	if l.lease == nil {
		// Somebody deleted it: its holder does not know yet, unless that is this replica.
		return l.seen.since.IsZero() || l.e.Deciding() || !now.Before(l.missing.Add(l.e.opts.LeaseDuration))
	}
	return !now.Before(l.seen.freeAt(l.e.opts.RenewDeadline)) && !now.Before(l.patience)
}

// hold takes or renews the Lease.
func (l *loop) hold(ctx context.Context) error {
	sent := l.e.now()
	want := l.lease
	if want == nil {
		want = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.e.opts.Name}}
	}
	got, err := l.put(ctx, held(want, l.e.opts.Identity, l.e.opts.LeaseDuration, sent, max(l.seen.record.transitions, l.e.Epoch())))
	if err != nil {
		return err
	}
	l.take(got)
	l.e.grant(sent, recordOf(got))
	return nil
}

// release gives the Lease back, so that another replica decides within its next look.
func (l *loop) release(ctx context.Context) error {
	got, err := l.put(ctx, released(l.lease, l.e.now()))
	if err != nil {
		return err
	}
	l.left = recordOf(got).transitions
	l.take(got)
	l.log.Info("Gave the Lease back", "epoch", l.left)
	return nil
}

// put sends one write. Whatever its error, the Lease must be read before the next one: the write may
// have been done.
func (l *loop) put(ctx context.Context, want *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.callTimeout())
	defer cancel()
	l.lease = nil
	if want.ResourceVersion == "" {
		return l.e.opts.Leases.Create(ctx, want, metav1.CreateOptions{})
	}
	return l.e.opts.Leases.Update(ctx, want, metav1.UpdateOptions{})
}

// callTimeout leaves room for a second try within the renew deadline.
func (l *loop) callTimeout() time.Duration { return l.e.opts.RenewDeadline / 2 }

// pause is how long to wait after a step that went well.
func (l *loop) pause() time.Duration {
	o := l.e.opts
	if l.mine() && !l.e.paused() {
		return o.RetryPeriod
	}
	// Contenders look at different moments, and one looks in time for an end that it can foresee.
	wait := o.RetryPeriod/4 + rand.N(o.RetryPeriod/4)
	if left := l.seen.freeAt(o.RenewDeadline).Sub(l.e.now()); left > 0 && left < wait {
		wait = left
	}
	return wait
}

// failed reports the first error of a row and returns how long to wait for the next try.
func (l *loop) failed(ctx context.Context, what string, err error) time.Duration {
	l.lease = nil
	o := l.e.opts
	switch {
	case ctx.Err() != nil:
		return o.RetryPeriod
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		l.log.V(1).Info("Somebody else wrote the Lease first")
		return o.RetryPeriod / 10
	}
	l.patience = l.e.now().Add(o.RetryPeriod)
	if !l.failing {
		l.failing = true
		l.log.Error(err, what)
	}
	return o.RetryPeriod/8 + rand.N(o.RetryPeriod/8)
}

// report logs a change, and sets off the news of a right that ended by itself.
func (l *loop) report() {
	deciding, epoch := l.e.Deciding(), l.e.Epoch()
	switch {
	case deciding && (!l.reported || l.epoch != epoch):
		l.log.Info("This replica decides", "epoch", epoch)
	case !deciding && l.reported:
		l.log.Info("This replica decides no longer", "epoch", epoch)
	}
	l.reported, l.epoch = deciding, epoch
}

// leave gives the Lease back at the end of the process, if it is ours.
func (l *loop) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseWithin)
	defer cancel()
	l.e.withdraw()
	l.report()
	for range releaseTries {
		if l.lease == nil {
			if err := l.read(ctx); err != nil {
				l.log.Error(err, "Reading the Lease to give it back")
				return
			}
		}
		if !l.mine() {
			return
		}
		if err := l.release(ctx); err == nil {
			return
		}
	}
	l.log.Info("Could not give the Lease back; it runs out by itself")
}
