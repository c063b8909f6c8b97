package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	if err := invalid(key.Validate(), checkToken(x.Grant), checkTTL(x.TTL), checkStage(x)); err != nil {
		return lock.Result{Err: &lock.UnknownError{Op: "renew " + key.String(), Reason: lock.ReasonOther, Err: err}}
	}
	if err := b.enter(ctx, "renew", key); err != nil {
		return lock.Result{Err: err}
	}
	if key.Tick != 0 {
		g, err := b.stamp(sent, x)
		return lock.Result{Grant: g, Err: err}
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
	return lock.Result{Grant: g, Awaited: e.awaited != "" && !strings.HasPrefix(string(e.value.owner), e.awaited)}
}

// Stamp brings a tick to a stage. See lock.Stamper.
func (b *Backend) Stamp(ctx context.Context, g lock.Grant, stage lock.Stage) (lock.Grant, error) {
	x := lock.Extension{Grant: g, TTL: g.TTL, Stage: stage}
	if err := invalid(g.Key.Validate(), checkToken(g), checkTTL(g.TTL), checkStage(x), stage.ValidateStamp()); err != nil {
		return lock.Grant{}, err
	}
	sent := b.now()
	if err := b.enter(ctx, "stamp", g.Key); err != nil {
		return lock.Grant{}, err
	}
	return b.stamp(sent, x)
}

func (b *Backend) stamp(sent time.Time, x lock.Extension) (lock.Grant, error) {
	b.mu.Lock()
	g, told, err := b.tick(x.Grant.Key).stamp(x.Grant, x.Stage, x.TTL, x.Shorten)
	now := b.now()
	b.mu.Unlock()
	if told {
		b.tell(x.Grant.Key)
	}
	if err != nil {
		return lock.Grant{}, err
	}
	g.ValidUntil = lock.ValidUntil(sent, x.TTL)
	if !g.Valid(now) {
		return lock.Grant{}, tooLate("stamp", g.Key)
	}
	return g, nil
}

// Release gives the key back. See lock.Backend.
func (b *Backend) Release(ctx context.Context, g lock.Grant, how lock.Leave) error {
	if err := invalid(g.Key.Validate(), checkToken(g), checkWait("keep", how.Keep), checkKept(g.Key, how)); err != nil {
		return err
	}
	if err := b.enter(ctx, "release", g.Key); err != nil {
		return err
	}
	b.mu.Lock()
	freed, err := b.giveBack(g, how)
	b.mu.Unlock()
	if freed {
		b.tell(g.Key)
	}
	return err
}

func (b *Backend) giveBack(g lock.Grant, how lock.Leave) (freed bool, err error) {
	if g.Key.Tick != 0 {
		return b.tick(g.Key).release(g, how)
	}
	e, now := b.entry(g.Key)
	return e.release(now, g, how)
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
	var freed bool
	if key.Tick != 0 {
		freed = b.tick(key).abandon(owner)
	} else {
		e, _ := b.entry(key)
		freed = e.abandon(owner)
	}
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
		views[i] = b.view(k)
		b.mu.Unlock()
	}
	return views, nil
}

func (b *Backend) view(k lock.Key) lock.View {
	if k.Tick != 0 {
		return b.tick(k).view()
	}
	e, now := b.entry(k)
	return e.view(now)
}

func checkToken(g lock.Grant) error {
	if g.Key.Tick != 0 {
		if _, _, _, ok := parseTickToken(g.Token); !ok {
			return fmt.Errorf("token %q is not of the form owner#number#stage", g.Token)
		}
		return nil
	}
	if _, _, ok := parseToken(g.Token); !ok {
		return fmt.Errorf("token %q is not of the form owner#number", g.Token)
	}
	return nil
}

func checkStage(x lock.Extension) error {
	switch {
	case x.Stage == "":
		return nil
	case x.Grant.Key.Tick == 0:
		return fmt.Errorf("stage %s: only a tick has one", x.Stage)
	}
	return x.Stage.ValidateStamp()
}

func checkKept(k lock.Key, how lock.Leave) error {
	if k.Tick != 0 && how.Keep > 0 {
		return errors.New("keep: a tick that is given back is free at once")
	}
	return nil
}
