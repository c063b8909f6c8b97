package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// store is a lock.Backend with faults: what happens to a call is decided, call by call, by a
// function of the test.
type store struct {
	mu      sync.Mutex
	records map[lock.Key]record
	highest map[lock.Key]lock.FencingToken
	calls   []call
	busy    map[owned]int
	overlap []owned // an ID for which two exclusive calls ran at once
	fault   func(call) fault
	hint    func(lock.Key)
	missed  func()
}

type owned struct {
	key   lock.Key
	owner lock.Owner
}

type record struct {
	owner   lock.Owner
	token   lock.Token
	fencing lock.FencingToken
	until   time.Time
}

// call is one call as it arrived.
type call struct {
	op      string
	at      time.Time
	keys    []lock.Key
	owner   lock.Owner
	request lock.Request
	renewed []lock.Extension
	leave   lock.Leave
}

func (c call) has(k lock.Key) bool {
	for _, key := range c.keys {
		if key == k {
			return true
		}
	}
	return false
}

// fault is what happens to a call. The zero value lets it pass.
type fault struct {
	delay  time.Duration // before the store acts
	reply  time.Duration // before the answer arrives
	err    error         // instead of acting
	hang   bool          // until the call's context ends, without acting
	lose   bool          // act, but lose the answer
	panics any
}

var (
	errCut = &lock.UnknownError{Op: "test", Reason: lock.ReasonUnreachable, Err: errors.New("connection refused")}
	cut    = fault{err: errCut}
	pass   = fault{}

	_ lock.Backend  = (*store)(nil)
	_ lock.Notifier = (*store)(nil)
)

func always(f fault) func(call) fault { return func(call) fault { return f } }

func newStore() *store {
	return &store{
		records: map[lock.Key]record{}, highest: map[lock.Key]lock.FencingToken{}, busy: map[owned]int{},
		fault: always(pass),
	}
}

func (s *store) setFault(f func(call) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// do carries one call through its fault; act runs with the mutex held.
func (s *store) do(ctx context.Context, c call, act func()) error {
	c.at = time.Now()
	s.mu.Lock()
	s.calls = append(s.calls, c)
	f := s.fault(c)
	s.mu.Unlock()
	if f.panics != nil {
		panic(f.panics)
	}
	if err := wait(ctx, f.delay); err != nil {
		return err
	}
	switch {
	case f.hang:
		<-ctx.Done()
		return timeout(ctx)
	case f.err != nil:
		return f.err
	}
	s.mu.Lock()
	act()
	s.mu.Unlock()
	if err := wait(ctx, f.reply); err != nil {
		return err
	}
	if f.lose {
		return &lock.UnknownError{Op: c.op, Reason: lock.ReasonNoReply, Err: errors.New("connection reset")}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return timeout(ctx)
	}
}

func timeout(ctx context.Context) error {
	return &lock.UnknownError{Op: "test", Reason: lock.ReasonTimeout, Err: ctx.Err()}
}

// alone notes that an exclusive call of an owner began; the function it returns notes its end.
func (s *store) alone(key lock.Key, owner lock.Owner) func() {
	id := owned{key, owner}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id]++; s.busy[id] > 1 {
		s.overlap = append(s.overlap, id)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy[id]--
	}
}

func (s *store) live(k lock.Key) (record, bool) {
	r, ok := s.records[k]
	return r, ok && time.Now().Before(r.until)
}

func (s *store) view(k lock.Key) lock.View {
	r, ok := s.live(k)
	if !ok {
		return lock.View{Key: k, State: lock.ViewFree, Highest: s.highest[k]}
	}
	return lock.View{Key: k, State: lock.ViewHeld, Owner: r.owner, Token: r.token, FencingToken: r.fencing,
		Remaining: time.Until(r.until), Type: "string", Highest: s.highest[k]}
}

func (s *store) Acquire(ctx context.Context, r lock.Request) (lock.Acquired, error) {
	defer s.alone(r.Key, r.Owner)()
	var got lock.Acquired
	var err error
	sent := time.Now()
	lostErr := s.do(ctx, call{op: "acquire", keys: []lock.Key{r.Key}, owner: r.Owner, request: r}, func() {
		old, taken := s.live(r.Key)
		switch {
		case taken && old.owner != r.Owner:
			err = &lock.HeldError{Key: r.Key, Seen: s.view(r.Key)}
			return
		case r.Since != 0 && s.highest[r.Key] > r.Since:
			err = &lock.LostError{Key: r.Key, Seen: s.view(r.Key)}
			return
		case !taken:
			n := max(s.highest[r.Key]+1, r.Floor)
			s.highest[r.Key] = n
			old = record{owner: r.Owner, fencing: n, token: lock.Token(fmt.Sprintf("%s#%d", r.Owner, n))}
		}
		old.until = time.Now().Add(r.TTL)
		s.records[r.Key] = old
		got = lock.Acquired{Again: taken, Before: lock.EndedNone, Grant: lock.Grant{Key: r.Key, Owner: r.Owner, Token: old.token,
			FencingToken: old.fencing, TTL: r.TTL, ValidUntil: lock.ValidUntil(sent, r.TTL)}}
	})
	if lostErr != nil {
		return lock.Acquired{}, lostErr
	}
	return got, err
}

func (s *store) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	results := make([]lock.Result, len(extensions))
	c := call{op: "renew", renewed: append([]lock.Extension(nil), extensions...)}
	for _, x := range extensions {
		c.keys = append(c.keys, x.Grant.Key)
	}
	sent := time.Now()
	err := s.do(ctx, c, func() {
		for i, x := range extensions {
			results[i] = s.renew(x, sent)
		}
	})
	if err != nil {
		for i := range results {
			results[i] = lock.Result{Err: err}
		}
	}
	return results
}

func (s *store) renew(x lock.Extension, sent time.Time) lock.Result {
	r, ok := s.live(x.Grant.Key)
	if !ok || r.token != x.Grant.Token {
		return lock.Result{Err: &lock.LostError{Key: x.Grant.Key, Token: x.Grant.Token, Seen: s.view(x.Grant.Key)}}
	}
	if until := time.Now().Add(x.TTL); x.Shorten || until.After(r.until) {
		r.until = until
	}
	s.records[x.Grant.Key] = r
	g := x.Grant
	g.TTL, g.ValidUntil = x.TTL, lock.ValidUntil(sent, x.TTL)
	return lock.Result{Grant: g}
}

func (s *store) Release(ctx context.Context, g lock.Grant, how lock.Leave) error {
	defer s.alone(g.Key, g.Owner)()
	var err error
	var hint func(lock.Key)
	lostErr := s.do(ctx, call{op: "release", keys: []lock.Key{g.Key}, owner: g.Owner, leave: how}, func() {
		if r, ok := s.live(g.Key); !ok || r.token != g.Token {
			err = &lock.LostError{Key: g.Key, Token: g.Token, Seen: s.view(g.Key)}
			return
		}
		delete(s.records, g.Key)
		hint = s.hint
	})
	if hint != nil {
		hint(g.Key)
	}
	if lostErr != nil {
		return lostErr
	}
	return err
}

func (s *store) Abandon(ctx context.Context, key lock.Key, owner lock.Owner) error {
	defer s.alone(key, owner)()
	return s.do(ctx, call{op: "abandon", keys: []lock.Key{key}, owner: owner}, func() {
		if r, ok := s.live(key); ok && r.owner == owner {
			delete(s.records, key)
		}
	})
}

func (s *store) Inspect(ctx context.Context, keys []lock.Key) ([]lock.View, error) {
	var views []lock.View
	err := s.do(ctx, call{op: "inspect", keys: keys}, func() {
		for _, k := range keys {
			views = append(views, s.view(k))
		}
	})
	return views, err
}

func (s *store) Notify(ctx context.Context, hint func(lock.Key), missed func()) error {
	s.mu.Lock()
	s.hint, s.missed = hint, missed
	s.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// mute is a store that answers no renewal, against the contract.
type mute struct{ *store }

func (mute) Renew(context.Context, []lock.Extension) []lock.Result { return nil }

// stubborn is a store whose renewals return only when the test lets them.
type stubborn struct {
	*store
	until chan struct{}
}

func (s *stubborn) Renew(ctx context.Context, extensions []lock.Extension) []lock.Result {
	<-s.until
	return s.store.Renew(context.WithoutCancel(ctx), extensions)
}
