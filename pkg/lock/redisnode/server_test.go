package redisnode_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/redisserver"
)

// own starts a server for one test.
func own(t *testing.T, args ...string) *redisserver.Server {
	t.Helper()
	return redisserver.Start(t, append(args, databases...)...)
}

// samePlace makes two backends use the same keys.
func samePlace(o *redisnode.Options) { o.Prefix, o.DB = "conch:", 0 }

// C79: the server forgets its scripts while a lock is held.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, server.Addr())
	g := s.acquire(request(ann)).Grant
	forget := func() { s.do("SCRIPT", "FLUSH") }
	forget()
	if err := s.renew(g); err != nil {
		t.Fatal(err)
	}
	forget()
	if v := s.view(); v.Token != g.Token {
		t.Fatalf("seen %+v", v)
	}
	forget()
	if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	forget()
	if err := s.Abandon(t.Context(), key, ann); err != nil {
		t.Fatal(err)
	}
}

// C79: only what was not understood is sent again, and all of it is answered.
func TestForgottenScriptsInABatchAreSentAgain(t *testing.T) {
	t.Parallel()
	s := open(t, own(t).Addr())
	extensions := make([]lock.Extension, 300)
	for i := range extensions {
		r := lock.Request{Key: lock.Key{Name: fmt.Sprint("k", i)}, Owner: ann, TTL: ttl}
		extensions[i] = lock.Extension{Grant: s.acquire(r).Grant, TTL: ttl}
	}
	s.do("SCRIPT", "FLUSH")
	for i, r := range s.Renew(t.Context(), extensions) {
		if r.Err != nil || r.Grant.Token != extensions[i].Grant.Token {
			t.Fatalf("renewal %d: %+v", i, r)
		}
	}
}

// C79: kill -9 and an empty restart. The holder learns that its key is gone, goes on if nobody came, and every later call works.
func TestAnEmptyRestartIsSurvived(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, server.Addr())
	g := s.acquire(request(ann)).Grant
	server.Kill()
	unknown(t, "renew while down", s.renew(g), lock.ReasonUnreachable)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() bool { return errors.Is(s.renew(g), lock.ErrLost) }, patience).Should(BeTrue())
	a := s.acquire(lock.Request{Key: key, Owner: ann, TTL: ttl, Since: g.FencingToken, Floor: g.FencingToken + 1})
	if a.Grant.FencingToken <= g.FencingToken || a.StartAfter != 0 {
		t.Fatalf("acquired %+v", a)
	}
	if err := s.Release(t.Context(), a.Grant, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
}

// FLUSHALL under a holder: it goes on where nobody came, and does not where somebody came and went.
func TestFlushUnderAHolder(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, server.Addr())
	g := s.acquire(request(ann)).Grant
	since := lock.Request{Key: key, Owner: ann, TTL: ttl, Since: g.FencingToken, Floor: g.FencingToken + 1}
	s.do("FLUSHALL")
	if err := s.renew(g); !errors.Is(err, lock.ErrLost) {
		t.Fatalf("renew: %v", err)
	}
	a := s.acquire(since)
	s.do("FLUSHALL")
	since.Since = a.Grant.FencingToken
	other := s.acquire(lock.Request{Key: key, Owner: cleo, TTL: ttl, Floor: a.Grant.FencingToken + 1})
	if other.Before != lock.EndedForgotten {
		t.Fatalf("acquired %+v", other)
	}
	if err := s.Release(t.Context(), other.Grant, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), since); !errors.Is(err, lock.ErrLost) {
		t.Fatalf("acquire: %v", err)
	}
}

// replicated starts a master and a replica that is in step with it.
func replicated(t *testing.T) (master, replica *redisserver.Server) {
	t.Helper()
	master, replica = own(t, "--repl-diskless-sync-delay", "0"), own(t)
	replica.Do(t, "REPLICAOF", "127.0.0.1", master.Port())
	master.Do(t, "SET", "mark", "1")
	NewWithT(t).Eventually(func() any { return replica.Do(t, "GET", "mark") }, 2*patience).Should(Equal("1"))
	return master, replica
}

// C63: a failover to a replica that is behind. It knows an older fencing token, so the next holder waits, and is still ahead of the lost one.
func TestFailoverToALaggingReplica(t *testing.T) {
	t.Parallel()
	master, replica := replicated(t)
	old, promoted := open(t, master.Addr(), samePlace), open(t, replica.Addr(), samePlace)
	first := old.acquire(request(ann)).Grant
	if err := old.Release(t.Context(), first, lock.Leave{}); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() lock.FencingToken { return promoted.view().Highest }, patience).Should(Equal(first.FencingToken))
	promoted.do("REPLICAOF", "NO", "ONE")
	unseen := old.acquire(request(bob)).Grant
	master.Kill()

	if err := promoted.renew(unseen); !errors.Is(err, lock.ErrLost) {
		t.Fatalf("renew of the lost tenure: %v", err)
	}
	r := request(cleo)
	r.Floor, r.Settle = unseen.FencingToken+1, lock.Settle{Delay: 10 * time.Second, Home: "away/"}
	a := promoted.acquire(r)
	if a.Before != lock.EndedForgotten || a.Grant.FencingToken <= unseen.FencingToken || a.StartAfter < ttl {
		t.Fatalf("acquired %+v", a)
	}
}

// C69: a replica that is asked by mistake may be behind, so it ends no grant and refuses nobody.
func TestAReplicaDecidesNothing(t *testing.T) {
	t.Parallel()
	master, replica := replicated(t)
	right, mistaken := open(t, master.Addr(), samePlace), open(t, replica.Addr(), samePlace)
	g := right.acquire(request(ann)).Grant
	calls := map[string]error{"renew": mistaken.renew(g), "release": mistaken.Release(t.Context(), g, lock.Leave{})}
	_, calls["acquire"] = mistaken.Acquire(t.Context(), request(bob))
	calls["abandon"] = mistaken.Abandon(t.Context(), key, cleo)
	NewWithT(t).Eventually(func() lock.Token { return mistaken.view().Token }, patience).Should(Equal(g.Token))
	calls["renew that need not extend"] = mistaken.Renew(t.Context(), []lock.Extension{{Grant: g, TTL: ttl / 2}})[0].Err
	_, calls["the same owner again"] = mistaken.Acquire(t.Context(), lock.Request{Key: key, Owner: ann, TTL: ttl / 2})
	gone := g
	gone.Key.Name = "never seen"
	calls["renew of what it does not know"] = mistaken.renew(gone)
	for name, err := range calls {
		unknown(t, name, err, lock.ReasonReadOnly)
	}
	if f, err := mistaken.Describe(t.Context()); err != nil || f.Role != "slave" {
		t.Fatalf("described %+v, %v", f, err)
	}
	if err := right.renew(g); err != nil {
		t.Fatal(err)
	}
}

// C65: a master that was cut off from its replicas refuses, if it is told to.
func TestAMasterWithoutReplicasRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, own(t, "--min-replicas-to-write", "1").Addr())
	_, err := s.Acquire(t.Context(), request(ann))
	unknown(t, "acquire", err, lock.ReasonOther)
}

func TestDescribeTellsServersApart(t *testing.T) {
	t.Parallel()
	server := own(t)
	s := open(t, server.Addr())
	first, err := s.Describe(t.Context())
	if err != nil || first.Role != "master" || first.RunID == "" || first.Started > time.Hour {
		t.Fatalf("described %+v, %v", first, err)
	}
	if err := server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	second, err := s.Describe(t.Context())
	if err != nil || second.RunID == first.RunID {
		t.Fatalf("described %+v, %v after a restart", second, err)
	}
}

func TestASocketIsAnAddress(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/s"
	server := own(t, "--unixsocket", path)
	s := open(t, server.Addr(), func(o *redisnode.Options) { o.Addresses = []string{path} })
	s.acquire(request(ann))
}
