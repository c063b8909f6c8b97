package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Renew extends grants. See lock.Backend.
func (b *Backend) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	sent := b.now()
	results := make([]lock.Result, len(extensions))
	for i, x := range extensions {
		results[i] = b.renew(ctx, sent, x)
	}
	return results
}

func (b *Backend) renew(ctx context.Context, sent time.Time, x lock.Extension) lock.Result {
	key := x.Grant.Key
	if err := invalid(key.Validate(), checkToken(x.Grant.Token), checkTTL(x.TTL)); err != nil {
		return lock.Result{Err: &lock.UnknownError{Op: "renew " + key.String(), Reason: lock.ReasonOther, Err: err}}
	}
	if err := b.enter(ctx, "renew", key); err != nil {
		return lock.Result{Err: err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, now := b.entry(key)
	if !e.bearsToken(x.Grant.Token) {
		return lock.Result{Err: &lock.LostError{Key: key, Token: x.Grant.Token, Seen: e.refusal(now)}}
	}
	e.extend(now, x.TTL, x.Shorten)
	g := x.Grant
	g.TTL, g.ValidUntil = x.TTL, lock.ValidUntil(sent, x.TTL)
	if !g.Valid(b.now()) {
		return lock.Result{Err: tooLate("renew", key)}
	}
	return lock.Result{Grant: g}
}

// Release gives the key back. See lock.Backend.
func (b *Backend) Release(ctx context.Context, g lock.Grant, how lock.Leave) error {
	if err := invalid(g.Key.Validate(), checkToken(g.Token), checkWait("keep", how.Keep)); err != nil {
		return err
	}
	if err := b.enter(ctx, "release", g.Key); err != nil {
		return err
	}
	b.mu.Lock()
	e, now := b.entry(g.Key)
	freed, err := e.release(now, g, how)
	b.mu.Unlock()
	if freed {
		b.tell(g.Key)
	}
	return err
}

func (e *entry) release(now time.Time, g lock.Grant, how lock.Leave) (freed bool, err error) {
	last := e.past()
	if e.bearsToken(g.Token) {
		last.owner, last.fence, last.foreign, last.expires = e.value.owner, e.value.fence, false, now.Add(remember)
		last.ended = clean
		if how.Unclean {
			last.ended = unclean
		}
		e.last = &last
		if how.Keep > 0 {
			e.value.released, e.value.expires = true, now.Add(how.Keep)
			return false, nil
		}
		e.value = nil
		return true, nil
	}
	marked := e.value != nil && e.value.released && e.value.token() == g.Token
	if marked || last.prev == g.Token || (last.token() == g.Token && last.handedBack()) {
		return false, nil
	}
	return false, &lock.LostError{Key: g.Key, Token: g.Token, Seen: e.refusal(now)}
}

// Abandon removes what an unanswered Acquire of this owner may have left. See lock.Backend.
func (b *Backend) Abandon(ctx context.Context, key lock.Key, owner lock.Owner) error {
	if err := invalid(key.Validate(), owner.Validate()); err != nil {
		return err
	}
	if err := b.enter(ctx, "abandon", key); err != nil {
		return err
	}
	b.mu.Lock()
	e, _ := b.entry(key)
	freed := e.abandon(owner)
	b.mu.Unlock()
	if freed {
		b.tell(key)
	}
	return nil
}

// abandon counts the tenure as clean: whoever never heard that it had the key has started nothing. A continuation's start was earlier.
func (e *entry) abandon(owner lock.Owner) (freed bool) {
	if e.last != nil && e.last.owner == owner && !e.last.handedBack() {
		e.last.ended = clean
		if e.last.continued {
			e.last.ended = unclean
		}
	}
	if !e.bears(owner) {
		return false
	}
	e.value = nil
	return true
}

// Inspect reports what stands under the keys. See lock.Backend.
func (b *Backend) Inspect(ctx context.Context, keys []lock.Key) ([]lock.View, error) {
	views := make([]lock.View, len(keys))
	for i, k := range keys {
		if err := invalid(k.Validate()); err != nil {
			return nil, err
		}
		if err := b.enter(ctx, "inspect", k); err != nil {
			return nil, err
		}
		b.mu.Lock()
		e, now := b.entry(k)
		views[i] = e.view(now)
		b.mu.Unlock()
	}
	return views, nil
}

func checkToken(t lock.Token) error {
	if _, _, ok := parseToken(t); !ok {
		return fmt.Errorf("token %q is not of the form owner#number", t)
	}
	return nil
}
