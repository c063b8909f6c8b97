package redisnode_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

func TestKeysStandAsDocumented(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr(), func(o *redisnode.Options) { o.Prefix = "conch:" })
	for _, k := range []lock.Key{{Name: "set/ns/{a} 100%"}, {Name: "their key", Raw: true}} {
		s.acquire(lock.Request{Key: k, Owner: ann, TTL: ttl})
	}
	if _, err := s.Announce(t.Context(), "id", "nonce", false); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, k := range s.do("KEYS", "*").([]any) {
		got[k.(string)] = s.do("TYPE", k)
	}
	want := map[string]any{
		"conch:{set/ns/%7Ba%7D 100%25}": "string", "conch:{set/ns/%7Ba%7D 100%25}:fence": "string", "conch:{set/ns/%7Ba%7D 100%25}:last": "hash",
		"their key": "string", "conch:{their key}:raw:fence": "string", "conch:{their key}:raw:last": "hash",
		"conch:meta": "hash", "conch:cluster:id": "string",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := s.do("HGET", "conch:meta", "layout"); got != "1" {
		t.Errorf("layout %v", got)
	}
}

// C03: whatever happens on the way, no key of a lock is ever without expiry.
func TestNoKeyOfALockLacksAnExpiry(t *testing.T) {
	t.Parallel()
	const locks = 40
	s, p := behind(t)
	s.acquire(request(ann))
	p.Set(proxy.Rule{Mode: proxy.Cut, Commands: []string{"EVALSHA"}, Contains: "{k1"})
	var all sync.WaitGroup
	for i := range locks {
		all.Go(func() {
			k := lock.Key{Name: fmt.Sprint("k", i)}
			a, err := s.Acquire(t.Context(), lock.Request{Key: k, Owner: ann, TTL: ttl})
			if err == nil && i%3 == 0 {
				_ = s.Release(t.Context(), a.Grant, lock.Leave{Keep: time.Duration(i) * time.Second})
			}
		})
	}
	all.Wait()
	keys := s.do("KEYS", s.prefix+"*").([]any)
	if len(keys) < 2*locks {
		t.Errorf("only %d keys to look at", len(keys))
	}
	for _, k := range keys {
		if k != s.prefix+"meta" && s.do("PTTL", k).(int64) < 0 {
			t.Errorf("%s has no expiry", k)
		}
	}
}

// C37: a lock that is given back leaves two small keys, which expire.
func TestWhatARemovedLockLeavesIsBoundedAndExpires(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr())
	const locks = 500
	highest := map[string]lock.FencingToken{}
	for i := range locks {
		k := lock.Key{Name: fmt.Sprint("k", i)}
		a := s.acquire(lock.Request{Key: k, Owner: ann, TTL: ttl})
		highest[k.Name] = a.Grant.FencingToken
		if err := s.Release(t.Context(), a.Grant, lock.Leave{}); err != nil {
			t.Fatal(err)
		}
	}
	keys := s.do("KEYS", "*").([]any)
	if len(keys) != 2*locks+1 {
		t.Errorf("%d keys for %d locks", len(keys), locks)
	}
	for _, k := range keys {
		if left := time.Duration(s.do("PTTL", k).(int64)) * time.Millisecond; k != s.prefix+"meta" && (left < 0 || left > 30*24*time.Hour) {
			t.Errorf("%s stays for %s", k, left)
		}
	}
	for name := range maps.Keys(highest) {
		if a := s.acquire(lock.Request{Key: lock.Key{Name: name}, Owner: ann, TTL: ttl}); a.Grant.FencingToken <= highest[name] {
			t.Fatalf("%s: fencing token %d after %d", name, a.Grant.FencingToken, highest[name])
		}
	}
}

func TestANewerLayoutStopsAcquiresOnly(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "1.5", "what"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := open(t, shared.Addr())
			g := s.acquire(request(ann)).Grant
			s.do("HSET", s.prefix+"meta", "layout", version)
			_, err := s.Acquire(t.Context(), lock.Request{Key: lock.Key{Name: "other"}, Owner: ann, TTL: ttl})
			unknown(t, "acquire", err, lock.ReasonLayoutTooNew)
			if s.do("EXISTS", s.name(lock.Key{Name: "other"})) != int64(0) {
				t.Error("something was acquired")
			}
			if err := s.renew(g); err != nil {
				t.Errorf("renew: %v", err)
			}
			if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
}

// C05: a helper's place that is taken by something else refuses new holders, with a reason, and does not end a tenure that stands.
func TestDamagedHelpers(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"fence", "last"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			s := open(t, shared.Addr())
			g := s.acquire(request(ann)).Grant
			s.do("DEL", s.helper(key, which))
			s.do("RPUSH", s.helper(key, which), "x")
			if err := s.renew(g); err != nil {
				t.Errorf("renew: %v", err)
			}
			if v := s.view(); v.Token != g.Token {
				t.Errorf("seen %+v", v)
			}
			if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
				t.Errorf("release: %v", err)
			}
			if err := s.renew(g); !errors.Is(err, lock.ErrLost) {
				t.Errorf("renew after the release: %v", err)
			}
			_, err := s.Acquire(t.Context(), request(bob))
			unknown(t, "acquire", err, lock.ReasonWrongType)
			if err := s.Abandon(t.Context(), key, bob); err != nil {
				t.Errorf("abandon: %v", err)
			}
			if s.do("EXISTS", s.name(key)) != int64(0) {
				t.Error("something was acquired")
			}
		})
	}
}

func TestLostHelpersAreMendedByARenewal(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr())
	g := s.acquire(request(ann)).Grant
	s.do("DEL", s.helper(key, "fence"), s.helper(key, "last"))
	if err := s.renew(g); err != nil {
		t.Fatal(err)
	}
	s.Delete(key)
	if v := s.view(); v.Highest != g.FencingToken || v.Last != ann || v.LastEnded != lock.EndedUnreleased {
		t.Fatalf("seen %+v", v)
	}
	for _, which := range []string{"fence", "last"} {
		if s.do("PTTL", s.helper(key, which)).(int64) <= 0 {
			t.Errorf("%s has no expiry", which)
		}
	}
}

// C05
func TestARawKeyAmongOursIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr())
	k := lock.Key{Name: s.prefix + "{x}", Raw: true}
	if _, err := s.Acquire(t.Context(), lock.Request{Key: k, Owner: ann, TTL: ttl}); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("acquire: %v", err)
	}
}

func TestOptionsThatCannotBeUsedAreAllNamed(t *testing.T) {
	t.Parallel()
	good := redisnode.Options{Addresses: []string{"redis.example:6379"}}
	if err := good.Validate(); err != nil {
		t.Errorf("good options: %v", err)
	}
	bad := redisnode.Options{
		Prefix: "a{b}", Mode: "Ring", Addresses: []string{"redis://user:" + canary + "@host:1", "host:2"}, DB: -1, ClientName: "a b",
		Timeout: time.Hour, PoolSize: -1,
	}
	_, err := redisnode.New(bad)
	if err == nil {
		t.Fatal("bad options were accepted")
	}
	for _, word := range []string{"prefix", "mode", "addresses: 2", "address:", "db -1", "clientName", "timeout", "poolSize"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not named in:\n%v", word, err)
		}
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the password is in:\n%v", err)
	}
}
