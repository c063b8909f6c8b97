package identity_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/controllers/identity"
	"github.com/conch-dev/conch/pkg/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noteboard is a store that keeps names.
type noteboard struct {
	mu    sync.Mutex // guards the rest
	names map[string]string
	away  bool
}

func (b *noteboard) Announce(_ context.Context, id, name string, takeover bool) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return "", errors.New("no answer")
	}
	if b.names == nil {
		b.names = map[string]string{}
	}
	if takeover || b.names[id] == "" {
		b.names[id] = name
	}
	return b.names[id], nil
}

func (b *noteboard) write(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names = map[string]string{"east": name}
}

func (b *noteboard) name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names["east"]
}

// term is an election whose outcome the test sets. Its Lease is confirmed every two seconds, unless
// it is stuck.
type term struct {
	mu       sync.Mutex // guards the rest
	deciding bool
	stuck    bool
	epoch    int64
	deciders []string
	begin    time.Time
	changed  chan struct{}
}

func newTerm(deciders ...string) *term {
	return &term{deciding: true, epoch: 1, deciders: deciders, begin: time.Now(), changed: make(chan struct{}, 1)}
}

func (e *term) set(change func(*term)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *term) Deciding() bool           { e.mu.Lock(); defer e.mu.Unlock(); return e.deciding }
func (e *term) Epoch() int64             { e.mu.Lock(); defer e.mu.Unlock(); return e.epoch }
func (e *term) Deciders() []string       { e.mu.Lock(); defer e.mu.Unlock(); return e.deciders }
func (e *term) Changed() <-chan struct{} { return e.changed }

func (e *term) Confirmed() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stuck {
		return e.begin
	}
	return e.begin.Add(time.Since(e.begin).Truncate(2 * time.Second))
}

func guard(t *testing.T, name string, e *term, stores map[string]lock.Announcer) *identity.Guard {
	t.Helper()
	g, err := identity.New(identity.Options{Stores: stores, Election: e, Cluster: "east", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return g
}

func on(b *noteboard) map[string]lock.Announcer { return map[string]lock.Announcer{"default": b} }

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestADeciderWritesItsNameAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before   string
		deciders []string
	}{
		"where nothing stood":                          {"", []string{"a"}},
		"where its predecessor's stood":                {"old", []string{"a", "old"}},
		"where that of one stood which never wrote it": {"older", []string{"a", "old", "older"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &noteboard{names: map[string]string{"east": tc.before}}
				g := guard(t, "a", newTerm(tc.deciders...), on(b))
				if g.Conflict() || b.name() != "a" {
					t.Errorf("conflict %t, %q stands there", g.Conflict(), b.name())
				}
				pass(time.Minute)
				if g.Conflict() {
					t.Error("a conflict with nobody")
				}
			})
		})
	}
}

func TestAReplicaThatDoesNotDecideWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, e := &noteboard{names: map[string]string{"east": "b"}}, newTerm()
		e.deciding = false
		g := guard(t, "a", e, on(b))
		pass(time.Minute)
		if g.Conflict() || b.name() != "b" {
			t.Errorf("conflict %t, %q stands there", g.Conflict(), b.name())
		}
	})
}

func TestAStrangersNameIsAConflictUntilItStaysAwayForThreeLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, e := &noteboard{}, newTerm("a")
		g := guard(t, "a", e, on(b))
		news := g.Changed()
		pass(10 * time.Second)
		b.write("stranger")
		<-news
		pass(0)
		if backend, rival := g.Rival(); !g.Conflict() || backend != "default" || rival != "stranger" {
			t.Errorf("conflict %t with %q in %q", g.Conflict(), rival, backend)
		}
		if b.name() != "a" {
			t.Errorf("%q stands there, the stranger does not notice", b.name())
		}
		pass(8 * time.Second)
		if !g.Conflict() {
			t.Error("over after two looks")
		}
		pass(2 * time.Second)
		if g.Conflict() {
			t.Error("not over after three looks")
		}
		<-news
	})
}

func TestANewDeciderThatFindsAStrangersNameIsInConflictBeforeItWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &noteboard{names: map[string]string{"east": "stranger"}}
		g := guard(t, "a", newTerm("a", "old"), on(b))
		if b.name() != "stranger" {
			t.Error("wrote its name before its Lease was confirmed")
		}
		pass(3 * time.Second)
		if !g.Conflict() || b.name() != "a" {
			t.Errorf("conflict %t, %q stands there", g.Conflict(), b.name())
		}
	})
}

func TestTwoClustersOfOneIdentityBothStayInConflictUntilOneEnds(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"in step": 0, "half a look apart": 1500 * time.Millisecond, "nearly a look apart": 2900 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, first := &noteboard{}, newTerm("a", "common")
				g := guard(t, "a", first, on(b))
				pass(30*time.Second + later)
				second := newTerm("b", "a", "common") // a clone has the Lease as well
				h := guard(t, "b", second, on(b))
				pass(12 * time.Second)
				for range 600 {
					pass(100 * time.Millisecond)
					if !g.Conflict() || !h.Conflict() {
						t.Fatalf("in conflict: the first %t, the clone %t", g.Conflict(), h.Conflict())
					}
				}
				second.set(func(e *term) { e.deciding = false })
				pass(15 * time.Second)
				if g.Conflict() || h.Conflict() {
					t.Errorf("in conflict: the first %t, the clone %t, which has ended", g.Conflict(), h.Conflict())
				}
			})
		})
	}
}

func TestASuccessorsNameIsNoConflictForOneWhoseLeaseIsNotConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, e := &noteboard{}, newTerm("a")
		g := guard(t, "a", e, on(b))
		e.set(func(e *term) { e.stuck = true })
		b.write("successor")
		pass(9 * time.Second)
		if g.Conflict() || b.name() != "successor" {
			t.Errorf("conflict %t, %q stands there", g.Conflict(), b.name())
		}
		e.set(func(e *term) { e.deciding = false })
		pass(9 * time.Second)
		if g.Conflict() || b.name() != "successor" {
			t.Errorf("conflict %t, %q stands there", g.Conflict(), b.name())
		}
	})
}

func TestAStoreThatDoesNotAnswerNeitherMakesNorEndsAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, other := &noteboard{}, &noteboard{away: true}
		g := guard(t, "a", newTerm("a"), map[string]lock.Announcer{"default": b, "other": other})
		pass(10 * time.Second)
		if g.Conflict() {
			t.Error("a conflict in silence")
		}
		b.write("stranger")
		pass(6 * time.Second)
		b.mu.Lock()
		b.away = true
		b.mu.Unlock()
		pass(time.Minute)
		if !g.Conflict() {
			t.Error("silence ended the conflict")
		}
	})
}

func TestOptionsThatAreMissingAreAllNamed(t *testing.T) {
	t.Parallel()
	_, err := identity.New(identity.Options{})
	if err == nil || !strings.Contains(err.Error(), "election") || !strings.Contains(err.Error(), "name is missing") {
		t.Errorf("got %v", err)
	}
}
