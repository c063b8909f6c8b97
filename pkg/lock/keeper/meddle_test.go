package keeper_test

import (
	"fmt"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// What follows is for tests to look at the store and to meddle with it.

func (s *store) plant(k lock.Key, owner lock.Owner, ttl time.Duration) lock.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.highest[k]++
	r := record{owner: owner, fencing: s.highest[k], until: time.Now().Add(ttl)}
	r.token = lock.Token(fmt.Sprintf("%s#%d", owner, r.fencing))
	s.records[k] = r
	return lock.Grant{Key: k, Owner: owner, Token: r.token, FencingToken: r.fencing, TTL: ttl}
}

func (s *store) remove(keys ...lock.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		delete(s.records, k)
	}
}

func (s *store) remaining(k lock.Key) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.live(k); ok {
		return time.Until(r.until)
	}
	return 0
}

func (s *store) holder(k lock.Key) lock.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.live(k)
	if !ok {
		return ""
	}
	return r.owner
}

// called returns the calls of one kind, all kinds if op is empty.
func (s *store) called(op string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []call
	for _, c := range s.calls {
		if op == "" || c.op == op {
			found = append(found, c)
		}
	}
	return found
}

func (s *store) forgetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *store) overlaps() []owned {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overlap
}
