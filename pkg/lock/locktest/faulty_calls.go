package locktest

import (
	"context"

	"github.com/conch-dev/conch/pkg/lock"
)

// Acquire is lock.Backend's, with faults.
func (f *Faulty) Acquire(ctx context.Context, r lock.Request) (a lock.Acquired, err error) {
	if fault := f.befall(ctx, Acquire, func() { a, err = f.inner.Acquire(ctx, r) }, r.Key); fault != nil {
		return lock.Acquired{}, fault
	}
	return a, err
}

// Renew is lock.Backend's, with faults. A fault befalls the whole batch.
func (f *Faulty) Renew(ctx context.Context, extensions []lock.Extension) (results []lock.Result) {
	keys := make([]lock.Key, len(extensions))
	for i, x := range extensions {
		keys[i] = x.Grant.Key
	}
	if fault := f.befall(ctx, Renew, func() { results = f.inner.Renew(ctx, extensions) }, keys...); fault != nil {
		results = make([]lock.Result, len(extensions))
		for i := range results {
			results[i].Err = fault
		}
	}
	return results
}

// Release is lock.Backend's, with faults.
func (f *Faulty) Release(ctx context.Context, g lock.Grant, how lock.Leave) (err error) {
	if fault := f.befall(ctx, Release, func() { err = f.inner.Release(ctx, g, how) }, g.Key); fault != nil {
		return fault
	}
	return err
}

// Abandon is lock.Backend's, with faults.
func (f *Faulty) Abandon(ctx context.Context, key lock.Key, owner lock.Owner) (err error) {
	if fault := f.befall(ctx, Abandon, func() { err = f.inner.Abandon(ctx, key, owner) }, key); fault != nil {
		return fault
	}
	return err
}

// Inspect is lock.Backend's, with faults.
func (f *Faulty) Inspect(ctx context.Context, keys []lock.Key) (views []lock.View, err error) {
	if fault := f.befall(ctx, Inspect, func() { views, err = f.inner.Inspect(ctx, keys) }, keys...); fault != nil {
		return nil, fault
	}
	return views, err
}

// Notify is lock.Notifier's.
func (f *Faulty) Notify(ctx context.Context, hint func(lock.Key), missed func()) error {
	if n, ok := f.inner.(lock.Notifier); ok {
		return n.Notify(ctx, hint, missed)
	}
	return lock.ErrUnsupported
}

// Describe is lock.Describer's.
func (f *Faulty) Describe(ctx context.Context) (lock.Facts, error) {
	if d, ok := f.inner.(lock.Describer); ok {
		return d.Describe(ctx)
	}
	return lock.Facts{}, lock.ErrUnsupported
}

// Announce is lock.Announcer's.
func (f *Faulty) Announce(ctx context.Context, id, nonce string, takeover bool) (string, error) {
	if a, ok := f.inner.(lock.Announcer); ok {
		return a.Announce(ctx, id, nonce, takeover)
	}
	return "", lock.ErrUnsupported
}

// Stamp is lock.Stamper's, with faults.
func (f *Faulty) Stamp(ctx context.Context, g lock.Grant, stage lock.Stage) (stamped lock.Grant, err error) {
	s, ok := f.inner.(lock.Stamper)
	if !ok {
		return lock.Grant{}, lock.ErrUnsupported
	}
	if fault := f.befall(ctx, Stamp, func() { stamped, err = s.Stamp(ctx, g, stage) }, g.Key); fault != nil {
		return lock.Grant{}, fault
	}
	return stamped, err
}
