package keeper

import (
	"context"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Health sums up what is heard from the store.
func (k *Keeper) Health() Health {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.health
	h.RoundDone = k.pending == 0 && !h.Answered.IsZero()
	return h
}

// hear notes how a call to the store ended.
func (k *Keeper) hear(err error, sent, now time.Time) {
	k.called = now
	switch {
	case refusedForGood(err): // nothing was sent
	case !isUnknown(err):
		outage := k.health.Since
		k.health = Health{Answered: now}
		if !outage.IsZero() && now.Sub(outage) >= k.o.Retry.Cap {
			k.wakeAll(now)
		}
	case sent.Before(k.health.Answered): // a straggler: the store has answered since
	default:
		k.health.Err = err
		if k.health.Since.IsZero() {
			k.health.Since = sent
		}
	}
}

// probe asks the store for something whenever nothing else did for a while.
func (k *Keeper) probe(ctx context.Context) {
	for ctx.Err() == nil {
		if wait := k.untilProbe(time.Now()); wait > 0 {
			rest(ctx, wait)
			continue
		}
		k.inspect(ctx)
	}
}

func (k *Keeper) untilProbe(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.called.IsZero() {
		return 0
	}
	return k.called.Add(k.o.ProbeEvery).Sub(now)
}

func (k *Keeper) inspect(ctx context.Context) {
	callCtx, cancel := context.WithTimeout(ctx, k.o.CallTimeout)
	defer cancel()
	var err error
	sent := time.Now()
	p := guard(func() { _, err = k.o.Backend.Inspect(callCtx, []lock.Key{k.o.ProbeKey}) })
	now := time.Now()
	if p != nil {
		k.tellPanic(k.o.ProbeKey)
		err = p.unknown(opInspect)
	} else {
		err = classified(opInspect, err)
		k.tellRequested(opInspect, now.Sub(sent), err)
	}
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hear(err, sent, now)
}
