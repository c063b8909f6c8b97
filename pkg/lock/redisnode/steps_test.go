package redisnode_test

import (
	"errors"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

const (
	ann  = lock.Owner("home/ns/pod/ann/1/a")
	bob  = lock.Owner("home/ns/pod/bob/2/b")
	cleo = lock.Owner("away/ns/pod/cleo/3/c")
	ttl  = time.Minute

	// brief is a timeout that a test lets pass.
	brief = 400 * time.Millisecond
)

var key = lock.Key{Name: "set/ns/job"}

func request(o lock.Owner) lock.Request { return lock.Request{Key: key, Owner: o, TTL: ttl} }

func briefly(o *redisnode.Options) { o.Timeout = brief }

// behind opens a backend whose link to the shared server goes through a proxy.
func behind(t *testing.T, change ...func(*redisnode.Options)) (*space, *proxy.Proxy) {
	t.Helper()
	p := proxy.Start(t, shared.Addr())
	return open(t, p.Addr(), change...), p
}

// acquire must be granted. It asks again while there is no answer, because a timeout that a test needs to be short may pass on a machine
// that is busy.
func (s *space) acquire(r lock.Request) lock.Acquired {
	s.Helper()
	for began := time.Now(); ; {
		a, err := s.Acquire(s.Context(), r)
		if err == nil {
			return a
		}
		if !errors.Is(err, lock.ErrUnknown) || time.Since(began) > patience {
			s.Fatalf("acquire as %s: %v", r.Owner, err)
		}
	}
}

func (s *space) renew(g lock.Grant) error {
	return s.Renew(s.Context(), []lock.Extension{{Grant: g, TTL: ttl}})[0].Err
}

func (s *space) view() lock.View {
	s.Helper()
	views, err := s.Inspect(s.Context(), []lock.Key{key})
	if err != nil {
		s.Fatal(err)
	}
	return views[0]
}

// unknown must be what the error is, for that reason.
func unknown(t *testing.T, what string, err error, want lock.Reason) {
	t.Helper()
	if !errors.Is(err, lock.ErrUnknown) || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) || lock.ReasonOf(err) != want {
		t.Errorf("%s: %v (reason %s), want ErrUnknown for reason %s", what, err, lock.ReasonOf(err), want)
	}
}

// everyCall makes each call of the contract once.
func (s *space) everyCall(g lock.Grant) map[string]error {
	_, acquired := s.Acquire(s.Context(), request(bob))
	_, inspected := s.Inspect(s.Context(), []lock.Key{key})
	_, announced := s.Announce(s.Context(), "id", "nonce", false)
	_, described := s.Describe(s.Context())
	_, tick := s.Acquire(s.Context(), tickOf(ann))
	claim := lock.Grant{Key: tickOf(ann).Key, Owner: ann, Token: "t#1#started", TTL: ttl}
	_, stamped := s.Stamp(s.Context(), claim, lock.StageStarted)
	return map[string]error{
		"acquire": acquired, "inspect": inspected, "announce": announced, "describe": described, "renew": s.renew(g),
		"tick": tick, "stamp": stamped, "put back": s.Release(s.Context(), claim, lock.Leave{PutBack: true}),
		"release": s.Release(s.Context(), g, lock.Leave{}), "abandon": s.Abandon(s.Context(), key, ann),
	}
}
