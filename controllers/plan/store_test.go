package plan_test

import (
	"fmt"
	"strings"
	"time"
)

// store is a model of the lock store for one key: what design section 7 says about it, and no more.
type store struct {
	owner   string
	fencing int64
	expires time.Time
	// highest is the fence key; last describes the newest acquisition.
	highest int64
	last    tenure
}

type tenure struct {
	owner                 string
	clean                 bool
	validUntil, notBefore time.Time
}

type request struct {
	owner, home  string
	floor, since int64
}

type reply int

const (
	granted reply = iota
	refused
	gone
)

func (s *store) live(now time.Time) bool { return s.owner != "" && now.Before(s.expires) }

func tokenOf(owner string, fencing int64) string { return fmt.Sprintf("%s#%d", owner, fencing) }

// acquire is idempotent for one owner. A continuation is granted only if nobody came between.
func (s *store) acquire(now time.Time, r request) reply {
	switch {
	case s.live(now) && s.owner == r.owner:
		return granted
	case s.live(now):
		return refused
	case r.since > 0 && s.highest > r.since:
		return gone
	}
	notBefore := s.last.notBefore
	switch before := s.last; {
	case r.since > 0:
	case r.floor-1 > s.highest:
		notBefore = now.Add(ttl + takeoverDelay)
	case before.owner != "" && !before.clean && !strings.HasPrefix(before.owner, r.home):
		notBefore = laterOf(now, before.validUntil).Add(takeoverDelay)
	}
	s.fencing = max(s.highest+1, now.UnixMilli(), r.floor)
	s.owner, s.expires, s.highest = r.owner, now.Add(ttl), s.fencing
	s.last = tenure{owner: r.owner, validUntil: s.expires, notBefore: notBefore}
	return granted
}

// renew compares the whole token and never creates a key.
func (s *store) renew(now time.Time, token string) bool {
	if !s.live(now) || tokenOf(s.owner, s.fencing) != token {
		return false
	}
	s.expires = now.Add(ttl)
	s.last.validUntil = s.expires
	return true
}

func (s *store) release(now time.Time, token string, clean bool) {
	if s.live(now) && tokenOf(s.owner, s.fencing) == token {
		s.owner, s.last.clean = "", clean
	}
}

// abandon compares the owner: what it takes away was never started.
func (s *store) abandon(owner string) {
	if s.owner == owner {
		s.owner, s.last.clean = "", true
	}
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
