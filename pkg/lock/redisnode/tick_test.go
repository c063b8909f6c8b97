package redisnode_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/proxy"
)

// tickOf asks for a tick that is due about now.
func tickOf(o lock.Owner) lock.Request {
	r := request(o)
	r.Key = key.At(lock.TickMinute(time.Now()))
	return r
}

func (s *space) stamp(g lock.Grant, stage lock.Stage) lock.Grant {
	s.Helper()
	stamped, err := s.Stamp(s.Context(), g, stage)
	if err != nil || stamped.Stage != stage {
		s.Fatalf("stamp %s: %+v, %v", stage, stamped, err)
	}
	return stamped
}

func TestTicksStandAsDocumented(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr(), func(o *redisnode.Options) { o.Prefix = "conch:" })
	now := lock.TickMinute(time.Now())
	for i, name := range []string{"set/ns/{a}", "raw"} {
		k := lock.Key{Name: name, Raw: i == 1}
		s.stamp(s.acquire(lock.Request{Key: k.At(now), Owner: ann, TTL: ttl}).Grant, lock.StageStarted)
		back := s.acquire(lock.Request{Key: k.At(now - 1), Owner: ann, TTL: ttl}).Grant
		if err := s.Release(t.Context(), back, lock.Leave{}); err != nil {
			t.Fatal(err)
		}
		s.acquire(lock.Request{Key: k, Owner: ann, TTL: ttl, Settle: lock.Settle{Delay: ttl, Home: "home/"}})
		_, err := s.Acquire(t.Context(), lock.Request{Key: k, Owner: cleo, TTL: ttl, Settle: lock.Settle{Delay: ttl, Home: "away/"}})
		if !errors.Is(err, lock.ErrHeld) {
			t.Fatal(err)
		}
	}
	var got []string
	for _, k := range s.do("KEYS", "*").([]any) {
		left := s.do("PTTL", k).(int64)
		if k != "conch:meta" && left <= 0 {
			t.Errorf("%s has no expiry", k)
		}
		got = append(got, k.(string))
	}
	var want []string
	for _, head := range []string{"conch:{set/ns/%7Ba%7D}:", "conch:{raw}:raw:"} {
		for _, tail := range []string{"fence", "last", "waiting", "tick:fence", "tick:newest", fmt.Sprint("tick:", now), fmt.Sprintf("tick:%d:back", now-1)} {
			want = append(want, head+tail)
		}
	}
	want = append(want, "conch:{set/ns/%7Ba%7D}", "raw", "conch:meta")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	record := fmt.Sprint("conch:{raw}:raw:tick:", now)
	if text := s.do("GET", record).(string); !strings.HasPrefix(text, string(ann)+"#") || !strings.HasSuffix(text, "#started") {
		t.Errorf("the record is %q", text)
	}
	if left := time.Duration(s.do("PTTL", record).(int64)) * time.Millisecond; left < lock.TickRetention-ttl || left > lock.TickRetention {
		t.Errorf("the record is kept for %s", left)
	}
}

// The answer is lost after the script ran, and the client sends it again by itself: nothing is done twice, and nothing is taken for another's.
func TestLostRepliesAboutATick(t *testing.T) {
	t.Parallel()
	s, p := behind(t)
	r := tickOf(ann)
	s.acquire(request(bob)) // the connection stands
	lossy := func() {
		p.Set(proxy.Rule{Mode: proxy.Cut, Commands: []string{"EVALSHA", "EVAL"}, Contains: "tick:", Times: 1})
	}
	lossy()
	a := s.acquire(r)
	if !a.Again || a.Grant.Stage != lock.StageClaimed {
		t.Fatalf("acquired %+v", a)
	}
	lossy()
	g := s.stamp(a.Grant, lock.StageStarted)
	lossy()
	if err := s.Release(t.Context(), g, lock.Leave{PutBack: true}); err != nil {
		t.Fatalf("put back: %v", err)
	}
	g = s.stamp(s.acquire(tickOf(bob)).Grant, lock.StageStarted)
	lossy()
	g = s.stamp(g, lock.StageFailed)
	lossy()
	if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
		t.Fatalf("release: %v", err)
	}
	views, err := s.Inspect(t.Context(), []lock.Key{r.Key})
	if err != nil || views[0].Stage != lock.StageFailed || views[0].Owner != bob {
		t.Fatalf("seen %+v, %v", views, err)
	}
}

func TestAStampWithoutAnAnswerIsUnknownAndThenDone(t *testing.T) {
	t.Parallel()
	s, p := behind(t, briefly)
	g := s.acquire(tickOf(ann)).Grant
	s.stamp(s.acquire(lock.Request{Key: key.At(g.Key.Tick - 1), Owner: ann, TTL: ttl}).Grant, lock.StageStarted) // the server knows the script
	p.Set(proxy.Rule{Mode: proxy.SwallowReply, Commands: []string{"EVALSHA", "EVAL"}})
	_, err := s.Stamp(t.Context(), g, lock.StageStarted)
	unknown(t, "stamp", err, lock.ReasonTimeout)
	p.Heal()
	if r := s.Renew(t.Context(), []lock.Extension{{Grant: g, TTL: ttl}})[0]; r.Err != nil || r.Grant.Stage != lock.StageStarted {
		t.Fatalf("renewed %+v", r)
	}
}

// Helpers of another type refuse new claims with a reason, and cost nobody a tick that runs.
func TestDamagedHelpersOfATick(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"tick:fence", "tick:newest"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			s := open(t, shared.Addr())
			g := s.acquire(tickOf(ann)).Grant
			s.do("DEL", s.helper(key, which))
			s.do("RPUSH", s.helper(key, which), "x")
			other := tickOf(bob)
			other.Key.Tick--
			_, err := s.Acquire(t.Context(), other)
			unknown(t, "acquire", err, lock.ReasonWrongType)
			if _, err := s.Acquire(t.Context(), request(cleo)); err != nil {
				t.Errorf("the plain key: %v", err)
			}
			s.stamp(s.stamp(g, lock.StageStarted), lock.StageSucceeded)
			if err := s.Release(t.Context(), g, lock.Leave{}); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
}

// A clock that was far ahead once blocks no tick of today.
func TestATickFromTheFutureDoesNotSupersede(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr())
	far := tickOf(ann)
	far.Key.Tick += 3 * 24 * 60
	s.stamp(s.acquire(far).Grant, lock.StageStarted)
	r := tickOf(bob)
	r.Ordered = true
	if g := s.stamp(s.acquire(r).Grant, lock.StageStarted); g.Stage != lock.StageStarted {
		t.Fatalf("started %+v", g)
	}
}

func TestTicksHeedTheLayoutsVersion(t *testing.T) {
	t.Parallel()
	s := open(t, shared.Addr())
	g := s.acquire(tickOf(ann)).Grant
	s.do("HSET", s.prefix+"meta", "layout", "2")
	other := tickOf(bob)
	other.Key.Tick--
	_, err := s.Acquire(t.Context(), other)
	unknown(t, "acquire", err, lock.ReasonLayoutTooNew)
	s.stamp(g, lock.StageStarted)
}
