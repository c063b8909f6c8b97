package redisnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// maxFencingToken is 2^53, beyond which the server's numbers lose units.
const maxFencingToken = 1 << 53

// Acquire takes the key with one script that may run twice. See lock.Backend.
func (b *Backend) Acquire(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	if r.Queue {
		return lock.Acquired{}, lock.ErrUnsupported
	}
	if err := b.checkRequest(r); err != nil {
		return lock.Acquired{}, err
	}
	if r.Key.Tick != 0 {
		return b.acquireTick(ctx, r)
	}
	answer := b.main.do(ctx, []op{{
		script:  acquireScript,
		keys:    append(b.layout.keys(r.Key), b.layout.meta(), b.layout.waiting(r.Key), b.layout.tickFence(r.Key)),
		subject: string(r.Owner),
		args: []any{string(r.Owner), milliseconds(r.TTL), int64(r.Floor), millisecondsUp(r.Settle.Delay), r.Settle.Home,
			int64(r.Since), layoutVersion},
	}})[0]
	operation := "acquire " + r.Key.String()
	if answer.err != nil {
		return lock.Acquired{}, unknown(operation, answer.err)
	}
	switch status := answer.fields[0]; status {
	case statusGranted, statusAgain:
		return acquired(operation, r, answer)
	case statusHeld:
		return lock.Acquired{}, &lock.HeldError{Key: r.Key, Seen: viewOf(r.Key, answer.fields[1:])}
	case statusLost:
		return lock.Acquired{}, &lock.LostError{
			Key: r.Key, Token: newToken(r.Owner, r.Since), Seen: viewOf(r.Key, answer.fields[1:]),
		}
	case "layout":
		return lock.Acquired{}, layoutTooNew(operation, answer.fields[1:])
	default:
		return lock.Acquired{}, unknown(operation, fmt.Errorf("answer %q is not understood", status))
	}
}

func (b *Backend) checkRequest(r lock.Request) error {
	problems := []error{b.checkKey(r.Key), r.Owner.Validate(), checkTTL(r.TTL)}
	if r.Floor < 0 || r.Floor > maxFencingToken || r.Since < 0 || r.Since >= maxFencingToken {
		problems = append(problems, fmt.Errorf("floor %d and since %d: write between 0 and 2^53", r.Floor, r.Since))
	}
	if r.Settle.Delay < 0 || r.Settle.Delay > lock.MaxTTL {
		problems = append(problems, fmt.Errorf("settle delay %s: write between 0 and %s", r.Settle.Delay, lock.MaxTTL))
	}
	if r.Key.Tick != 0 && r.Since != 0 {
		problems = append(problems, errors.New("since: a tick has no tenure to continue"))
	}
	if r.Key.Tick == 0 && r.Retry {
		problems = append(problems, errors.New("retry: only a tick is started"))
	}
	return invalid(problems...)
}

// acquired builds the answer from: token, how the tenure before ended, wait, ignored fencing token.
func acquired(operation string, r lock.Request, answer reply) (lock.Acquired, error) {
	fields := slices.Concat(answer.fields[1:], make([]string, 4))
	owner, fence, ok := parseToken(fields[0])
	if !ok || owner != r.Owner {
		return lock.Acquired{}, unknown(operation, fmt.Errorf("%w (token %q)", errShift, fields[0]))
	}
	a := lock.Acquired{
		Grant:      granted(lock.Grant{Key: r.Key, Owner: owner, Token: lock.Token(fields[0]), FencingToken: fence}, answer.sent, r.TTL),
		Again:      answer.fields[0] == statusAgain,
		Before:     lock.Ending(fields[1]),
		StartAfter: duration(fields[2]),
	}
	if fields[3] != "" {
		a.Warning = fmt.Sprintf("the stored fencing token %q was ignored: it is no number, or more than a year ahead of the server's clock", fields[3])
	}
	if !a.Grant.Valid(time.Now()) {
		return lock.Acquired{}, tooLate(operation, answer.sent)
	}
	return a, nil
}

// granted is the grant with a lease of ttl that was asked for at sent.
func granted(g lock.Grant, sent time.Time, ttl time.Duration) lock.Grant {
	g.TTL = ttl
	g.ValidUntil = lock.ValidUntil(sent, ttl.Truncate(time.Millisecond))
	return g
}

func tooLate(operation string, sent time.Time) error {
	return &lock.UnknownError{Op: operation, Reason: lock.ReasonNoReply, Err: fmt.Errorf(
		"the answer took %s, and the lease was over by then: check network and load, or raise the ttl", time.Since(sent).Round(time.Millisecond))}
}

func layoutTooNew(operation string, version []string) error {
	return &lock.UnknownError{Op: operation, Reason: lock.ReasonLayoutTooNew, Err: errors.New(
		"the store has layout " + strconv.Quote(version[0]) + " and this release knows up to " + layoutVersion + ": upgrade conch")}
}
