package memory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Acquire takes the key. See lock.Backend.
func (b *Backend) Acquire(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	if r.Queue {
		return lock.Acquired{}, lock.ErrUnsupported
	}
	if err := checkRequest(r); err != nil {
		return lock.Acquired{}, err
	}
	sent := b.now()
	if err := b.enter(ctx, "acquire", r.Key); err != nil {
		return lock.Acquired{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, err := b.take(r)
	if err != nil {
		return lock.Acquired{}, err
	}
	a.Grant.ValidUntil = lock.ValidUntil(sent, r.TTL)
	if !a.Grant.Valid(b.now()) {
		return lock.Acquired{}, tooLate("acquire", r.Key)
	}
	return a, nil
}

// take acquires a plain key or a tick. The mutex must be held.
func (b *Backend) take(r lock.Request) (lock.Acquired, error) {
	if r.Key.Tick != 0 {
		return b.tick(r.Key).acquire(r)
	}
	e, now := b.entry(r.Key)
	return e.acquire(now, r)
}

func checkRequest(r lock.Request) error {
	problems := []error{r.Key.Validate(), r.Owner.Validate(), checkTTL(r.TTL), checkWait("settle delay", r.Settle.Delay)}
	if r.Floor < 0 || r.Floor > maxFence || r.Since < 0 || r.Since >= maxFence {
		problems = append(problems, fmt.Errorf("floor %d and since %d: write between 0 and 2^53", r.Floor, r.Since))
	}
	if r.Key.Tick != 0 && r.Since != 0 {
		problems = append(problems, errors.New("since: a tick has no tenure to continue"))
	}
	if r.Key.Tick == 0 && r.Retry {
		problems = append(problems, errors.New("retry: only a tick is started"))
	}
	return invalid(problems...)
}

func tooLate(operation string, key lock.Key) error {
	return &lock.UnknownError{
		Op: operation + " " + key.String(), Reason: lock.ReasonNoReply, Err: errors.New("the lease was over before the answer came"),
	}
}

func (e *entry) acquire(now time.Time, r lock.Request) (lock.Acquired, error) {
	highest, ignored := e.highest(now)
	if e.bears(r.Owner) {
		e.extend(now, r.TTL, false)
		return e.acquired(now, r, true), nil
	}
	if r.Since > 0 && (e.value != nil || highest > r.Since) {
		return lock.Acquired{}, &lock.LostError{Key: r.Key, Token: plainToken(r.Owner, r.Since), Seen: e.refusal(now)}
	}
	if e.value != nil {
		e.await(now, r.Settle.Home)
		return lock.Acquired{}, &lock.HeldError{Key: r.Key, Seen: e.refusal(now)}
	}
	e.take(now, r, highest)
	a := e.acquired(now, r, false)
	if ignored != "" {
		a.Warning = fmt.Sprintf("the stored fencing token %q was ignored: it is no number, or more than a year ahead of the clock", ignored)
	}
	return a, nil
}

// take writes the new tenure down.
func (e *entry) take(now time.Time, r lock.Request, highest lock.FencingToken) {
	last := e.past()
	before := e.ending()
	if max(highest, e.book.highest(now)) < r.Floor-1 || (before == lock.EndedNone && highest > 0) {
		before = lock.EndedForgotten
	}
	notBefore, settles := e.settle(now, r, before)
	number := max(highest+1, e.book.highest(now)+1, r.Since+1, r.Floor, lock.FencingToken(now.UnixMilli()))
	prev := lock.Token("")
	if last.handedBack() {
		prev = last.token()
	}
	e.fence = fence{text: strconv.FormatInt(int64(number), 10), expires: now.Add(remember)}
	e.value = &value{owner: r.Owner, fence: number, kind: stringKind, expires: now.Add(r.TTL)}
	e.last = &tenure{
		owner: r.Owner, fence: number, validUntil: e.value.expires, notBefore: notBefore, settles: settles,
		before: before, prev: prev, continued: r.Since > 0, expires: now.Add(remember),
	}
}

// settle says when the new holder may start, and whose end that waits for (empty: not one that anybody confirms). What an earlier acquire
// found holds until it has passed, whoever acquired and gave back since.
func (e *entry) settle(now time.Time, r lock.Request, before lock.Ending) (notBefore time.Time, settles lock.Owner) {
	last := e.past()
	if last.notBefore.After(now) {
		notBefore, settles = earlier(last.notBefore, now.Add(2*lock.MaxTTL)), last.settles
	}
	if r.Since > 0 || r.Settle.Delay == 0 || before == lock.EndedNone || before == lock.EndedReleased {
		return notBefore, settles
	}
	from, whom := now, lock.Owner("")
	if last.owner != "" && last.ended != clean {
		from = later(from, earlier(last.validUntil, now.Add(lock.MaxTTL)))
	}
	switch before {
	case lock.EndedForgotten:
		from = later(from, now.Add(r.TTL))
	case lock.EndedUnreleased:
		whom = last.owner
	}
	if !notBefore.IsZero() && settles != whom && (!confirms(r.Settle, settles) || !confirms(r.Settle, whom)) {
		whom = ""
	}
	return later(notBefore, from.Add(r.Settle.Delay)), whom
}

// confirms reports whether the caller confirms the end of the owner's tenure by itself.
func confirms(s lock.Settle, o lock.Owner) bool {
	return s.Home != "" && o != "" && strings.HasPrefix(string(o), s.Home)
}

// acquired describes the tenure that stands, for the first answer and for every repetition.
func (e *entry) acquired(now time.Time, r lock.Request, again bool) lock.Acquired {
	last := e.past()
	a := lock.Acquired{
		Grant:  lock.Grant{Key: r.Key, Owner: r.Owner, Token: e.value.token(), FencingToken: e.value.fence, TTL: r.TTL},
		Again:  again,
		Before: last.before,
	}
	if r.Settle.Delay > 0 && !confirms(r.Settle, last.settles) {
		a.StartAfter = max(0, earlier(last.notBefore, now.Add(2*lock.MaxTTL)).Sub(now))
	}
	return a
}

// await notes down that somebody of a home waits for one of another.
func (e *entry) await(now time.Time, home string) {
	if e.state() == lock.ViewHeld && home != "" && !strings.HasPrefix(string(e.value.owner), home) {
		e.awaited, e.awaitedUntil = home, now.Add(lock.AwaitedFor)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
