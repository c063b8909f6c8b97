package redisnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// tickOp is a script of a tick. Every one is told the minute first.
func (b *Backend) tickOp(s *script, k lock.Key, subject string, args ...any) op {
	return op{script: s, keys: b.layout.tickKeys(k), subject: subject, args: append([]any{k.Tick}, args...)}
}

func (b *Backend) acquireTick(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	o := b.tickOp(tickAcquireScript, r.Key, string(r.Owner), string(r.Owner), milliseconds(r.TTL), int64(r.Floor), flag(r.Ordered),
		layoutVersion, millisecondsUp(r.Settle.Delay), flag(r.Retry))
	o.keys = append(o.keys, b.layout.meta(), b.layout.lock(r.Key.Plain()))
	answer := b.main.do(ctx, []op{o})[0]
	operation := "acquire " + r.Key.String()
	if answer.err != nil {
		return lock.Acquired{}, unknown(operation, answer.err)
	}
	switch status := answer.fields[0]; status {
	case statusGranted, statusAgain:
		return tickAcquired(operation, r, answer)
	case "layout":
		return lock.Acquired{}, layoutTooNew(operation, answer.fields[1:])
	default:
		return lock.Acquired{}, tickRefusal(operation, lock.Grant{Key: r.Key}, answer)
	}
}

// tickAcquired builds the answer from: token, whether data was lost, wait.
func tickAcquired(operation string, r lock.Request, answer reply) (lock.Acquired, error) {
	fields := slices.Concat(answer.fields[1:], make([]string, 3))
	answer.fields = []string{answer.fields[0], fields[0]}
	g, err := tickGrant(operation, lock.Grant{Key: r.Key, Owner: r.Owner, Ordered: r.Ordered}, answer, r.TTL)
	if err != nil {
		return lock.Acquired{}, err
	}
	return lock.Acquired{
		Grant: g, Again: answer.fields[0] == statusAgain, Before: lock.Ending(fields[1]), StartAfter: duration(fields[2]),
	}, nil
}

// tickGrant reads the token that a script answers.
func tickGrant(operation string, g lock.Grant, answer reply, ttl time.Duration) (lock.Grant, error) {
	text := strings.Join(answer.fields[1:], " ")
	owner, fence, stage, ok := parseTickToken(text)
	if !ok || owner != g.Owner {
		return lock.Grant{}, unknown(operation, fmt.Errorf("%w (token %q)", errShift, text))
	}
	g.Token, g.FencingToken, g.Stage = lock.Token(text), fence, stage
	g = granted(g, answer.sent, ttl)
	if !g.Valid(time.Now()) {
		return lock.Grant{}, tooLate(operation, answer.sent)
	}
	return g, nil
}

// tickRefusal is any answer but success.
func tickRefusal(operation string, g lock.Grant, answer reply) error {
	seen := viewOf(g.Key, answer.fields[1:])
	switch status := answer.fields[0]; status {
	case statusHeld:
		return &lock.HeldError{Key: g.Key, Seen: seen}
	case statusLost:
		return &lock.LostError{Key: g.Key, Token: g.Token, Seen: seen}
	case "started":
		return &lock.StartedError{Key: g.Key, Seen: seen}
	case "age":
		return &lock.TooOldError{Key: g.Key, Why: lock.TooOldAge, Seen: seen}
	case "superseded":
		return &lock.TooOldError{Key: g.Key, Why: lock.TooOldSuperseded, Seen: seen}
	default:
		return unknown(operation, fmt.Errorf("answer %q is not understood", status))
	}
}

// Stamp brings a tick to a stage with one script that may run twice. See lock.Stamper.
func (b *Backend) Stamp(ctx context.Context, g lock.Grant, stage lock.Stage) (lock.Grant, error) {
	x := lock.Extension{Grant: g, TTL: g.TTL, Stage: stage}
	if err := invalid(b.checkExtension(x), stage.ValidateStamp()); err != nil {
		return lock.Grant{}, err
	}
	r := renewed("stamp "+g.Key.String(), x, b.renewals.do(ctx, []op{b.renewal(x)})[0])
	return r.Grant, r.Err
}

func (b *Backend) tickRenewal(x lock.Extension) op {
	owner, fence, from, _ := parseTickToken(string(x.Grant.Token))
	to := x.Stage
	if to == "" {
		to = from
	}
	return b.tickOp(tickStampScript, x.Grant.Key, string(x.Grant.Token), string(owner), int64(fence), string(from), string(to),
		milliseconds(x.TTL), flag(x.Shorten), flag(x.Grant.Ordered), b.layout.channel(x.Grant.Key))
}

func tickRenewed(operation string, x lock.Extension, answer reply) lock.Result {
	if answer.fields[0] != "stamped" {
		return lock.Result{Err: tickRefusal(operation, x.Grant, answer)}
	}
	g := x.Grant
	g.Owner, _, _, _ = parseTickToken(string(g.Token))
	g, err := tickGrant(operation, g, answer, x.TTL)
	return lock.Result{Grant: g, Err: err}
}

func (b *Backend) releaseTick(ctx context.Context, g lock.Grant, how lock.Leave) error {
	owner, fence, _, _ := parseTickToken(string(g.Token))
	o := b.tickOp(tickReleaseScript, g.Key, string(g.Token), string(owner), int64(fence), flag(how.PutBack), b.layout.channel(g.Key))
	answer := b.main.do(ctx, []op{o})[0]
	operation := "release " + g.Key.String()
	switch {
	case answer.err != nil:
		return unknown(operation, answer.err)
	case answer.fields[0] == statusReleased:
		return nil
	}
	return tickRefusal(operation, g, answer)
}

func parseTickToken(s string) (lock.Owner, lock.FencingToken, lock.Stage, bool) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return "", 0, "", false
	}
	stage := lock.Stage(s[i+1:])
	owner, fence, ok := parseToken(s[:i])
	return owner, fence, stage, ok && (stage == lock.StageClaimed || stage.Begun())
}

// asTick adds to a view what only a tick has: stage and newest tick that was started.
func asTick(v lock.View, fields []string) lock.View {
	if v.State == lock.ViewHeld {
		v.Owner, v.FencingToken, v.Stage, _ = parseTickToken(string(v.Token))
	}
	if len(fields) > 8 {
		v.Newest, _ = strconv.ParseInt(fields[8], 10, 64)
	}
	return v
}

// checkExtension refuses what the server need not be asked.
func (b *Backend) checkExtension(x lock.Extension) error {
	problems := []error{b.checkKey(x.Grant.Key), checkToken(x.Grant), checkTTL(x.TTL)}
	switch {
	case x.Stage == "":
	case x.Grant.Key.Tick == 0:
		problems = append(problems, fmt.Errorf("stage %s: only a tick has one", x.Stage))
	default:
		problems = append(problems, x.Stage.ValidateStamp())
	}
	return errors.Join(problems...)
}
