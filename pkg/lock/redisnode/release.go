package redisnode

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Release gives the key back if it still bears the whole token. See lock.Backend.
func (b *Backend) Release(ctx context.Context, g lock.Grant, how lock.Leave) error {
	if err := invalid(b.checkKey(g.Key), checkToken(g.Token), checkKeep(how.Keep)); err != nil {
		return err
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
	answer := b.main.do(ctx, []op{{
		script:  abandonScript,
		keys:    b.layout.keys(key),
		subject: string(owner),
		args:    []any{string(owner), b.layout.channel(key)},
	}})[0]
	if answer.err != nil {
		return unknown("abandon "+key.String(), answer.err)
	}
	return nil
}

func checkKeep(keep time.Duration) error {
	if keep < 0 || keep > lock.MaxTTL {
		return fmt.Errorf("keep %s: write between 0 and %s", keep, lock.MaxTTL)
	}
	return nil
}
