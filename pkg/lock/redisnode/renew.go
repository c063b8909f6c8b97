package redisnode

import (
	"context"
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// renewBatch bounds how long the server works on one pipeline without looking at others, about 5 ms.
const renewBatch = 256

// Renew extends grants in pipelines. After one that got no answer the rest is not tried, so that the call stays bounded.
func (b *Backend) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	results := make([]lock.Result, 0, len(extensions))
	for len(results) < len(extensions) {
		batch := extensions[len(results):min(len(results)+renewBatch, len(extensions))]
		done, err := b.renewBatch(ctx, batch)
		results = append(results, done...)
		for err != nil && len(results) < len(extensions) {
			x := extensions[len(results)]
			results = append(results, lock.Result{Err: unknown("renew "+x.Grant.Key.String(), err)})
		}
	}
	return results
}

// renewBatch answers each extension, and says why if none was answered by the server.
func (b *Backend) renewBatch(ctx context.Context, batch []lock.Extension) ([]lock.Result, error) {
	results := make([]lock.Result, len(batch))
	ops, at := make([]op, 0, len(batch)), make([]int, 0, len(batch))
	for i, x := range batch {
		if err := invalid(b.checkExtension(x)); err != nil {
			results[i].Err = &lock.UnknownError{Op: "renew " + x.Grant.Key.String(), Reason: lock.ReasonOther, Err: err}
			continue
		}
		ops, at = append(ops, b.renewal(x)), append(at, i)
	}
	if len(ops) == 0 {
		return results, nil
	}
	var failure error
	answered := false
	for i, answer := range b.renewals.do(ctx, ops) {
		results[at[i]] = renewed("renew "+batch[at[i]].Grant.Key.String(), batch[at[i]], answer)
		if answer.err != nil {
			failure = answer.err
		}
		answered = answered || answer.err == nil || isAnswer(answer.err)
	}
	if answered {
		return results, nil
	}
	return results, failure
}

func (b *Backend) renewal(x lock.Extension) op {
	if x.Grant.Key.Tick != 0 {
		return b.tickRenewal(x)
	}
	return op{
		script:  renewScript,
		keys:    append(b.layout.keys(x.Grant.Key), b.layout.waiting(x.Grant.Key)),
		subject: string(x.Grant.Token),
		args:    []any{string(x.Grant.Token), milliseconds(x.TTL), flag(x.Shorten)},
	}
}

func renewed(operation string, x lock.Extension, answer reply) lock.Result {
	if answer.err != nil {
		return lock.Result{Err: unknown(operation, answer.err)}
	}
	if x.Grant.Key.Tick != 0 {
		return tickRenewed(operation, x, answer)
	}
	switch status := answer.fields[0]; status {
	case "renewed":
		g := granted(x.Grant, answer.sent, x.TTL)
		if !g.Valid(time.Now()) {
			return lock.Result{Err: tooLate(operation, answer.sent)}
		}
		return lock.Result{Grant: g, Awaited: len(answer.fields) > 1}
	case "lost":
		return lock.Result{Err: lost(x.Grant, answer)}
	default:
		return lock.Result{Err: unknown(operation, fmt.Errorf("answer %q is not understood", status))}
	}
}

func lost(g lock.Grant, answer reply) error {
	return &lock.LostError{Key: g.Key, Token: g.Token, Seen: viewOf(g.Key, answer.fields[1:])}
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
