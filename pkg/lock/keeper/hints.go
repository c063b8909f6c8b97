package keeper

import (
	"context"
	"errors"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// listen wakes waiters when the store hints at a release, if it can. Nothing depends on it.
func (k *Keeper) listen(ctx context.Context) {
	n, ok := k.o.Backend.(lock.Notifier)
	if !ok {
		return
	}
	var pause time.Duration
	for ctx.Err() == nil {
		var err error
		began := time.Now()
		if p := guard(func() { err = n.Notify(ctx, k.hint, k.missed) }); p != nil {
			k.tellPanic(lock.Key{})
		}
		if errors.Is(err, lock.ErrUnsupported) {
			return
		}
		if time.Since(began) > k.o.Retry.Cap {
			pause = 0
		}
		pause = k.o.Retry.longer(pause, k.o.Random)
		rest(ctx, k.o.Retry.spread(pause, k.o.Random))
	}
}

// hint lets those ask again who wait for the key, none sooner after its last attempt than the
// shortest pause.
func (k *Keeper) hint(key lock.Key) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := range k.waiting[key] {
		if e.pile == nil {
			e.asking.hinted = true
			continue
		}
		if at := k.soonest(e, now); at.Before(e.due) {
			e.due = at
			k.place(e)
		}
	}
}

// missed is told by the store after a gap in its hints.
func (k *Keeper) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wakeAll(time.Now())
}

// wakeAll lets all who wait ask again within half the longest pause, spread by chance: they come
// sooner than they would have, and those who are overdue after an outage do not come all at once.
func (k *Keeper) wakeAll(now time.Time) {
	for _, entries := range k.waiting {
		for e := range entries {
			at := later(now.Add(time.Duration(k.o.Random()*float64(k.o.Retry.Cap/2))), k.soonest(e, now))
			if e.pile != nil && (at.Before(e.due) || e.due.Before(now)) {
				e.due = at
				k.place(e)
			}
		}
	}
}

func (k *Keeper) index(e *entry) {
	if k.waiting[e.id.Key] == nil {
		k.waiting[e.id.Key] = map[*entry]struct{}{}
	}
	k.waiting[e.id.Key][e] = struct{}{}
}

func (k *Keeper) unindex(e *entry) {
	delete(k.waiting[e.id.Key], e)
	if len(k.waiting[e.id.Key]) == 0 {
		delete(k.waiting, e.id.Key)
	}
}
