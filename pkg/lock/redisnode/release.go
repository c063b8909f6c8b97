package redisnode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Release gives the key back if it still bears the whole token. See lock.Backend.
func (b *Backend) Release(ctx context.Context, g lock.Grant, how lock.Leave) error {
	if err := invalid(b.checkKey(g.Key), checkToken(g), checkKeep(g.Key, how.Keep)); err != nil {
		return err
	}
	if g.Key.Tick != 0 {
		return b.releaseTick(ctx, g, how)
	}
	answer := b.main.do(ctx, []op{{
		script:  releaseScript,
		keys:    b.layout.keys(g.Key),
		subject: string(g.Token),
		args:    []any{string(g.Token), millisecondsUp(how.Keep), flag(how.Unclean), b.layout.channel(g.Key)},
	}})[0]
	operation := "release " + g.Key.String()
	if answer.err != nil {
		return unknown(operation, answer.err)
	}
	switch status := answer.fields[0]; status {
	case "released":
		return nil
	case "lost":
		return lost(g, answer)
	default:
		return unknown(operation, fmt.Errorf("answer %q is not understood", status))
	}
}

// Abandon removes what an unanswered Acquire of this owner may have left. See lock.Backend.
func (b *Backend) Abandon(ctx context.Context, key lock.Key, owner lock.Owner) error {
	if err := invalid(b.checkKey(key), owner.Validate()); err != nil {
		return err
	}
	o := op{
		script:  abandonScript,
		keys:    b.layout.keys(key),
		subject: string(owner),
		args:    []any{string(owner), b.layout.channel(key)},
	}
	if key.Tick != 0 {
		o = b.tickOp(tickAbandonScript, key, string(owner), o.args...)
	}
	answer := b.main.do(ctx, []op{o})[0]
	if answer.err != nil {
		return unknown("abandon "+key.String(), answer.err)
	}
	return nil
}

func checkKeep(k lock.Key, keep time.Duration) error {
	if k.Tick != 0 && keep > 0 {
		return errors.New("keep: a tick that is given back is free at once")
	}
	if keep < 0 || keep > lock.MaxTTL {
		return fmt.Errorf("keep %s: write between 0 and %s", keep, lock.MaxTTL)
	}
	return nil
}
