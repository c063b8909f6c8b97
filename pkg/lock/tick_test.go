package lock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

func TestATickIsNamedByItsMinute(t *testing.T) {
	t.Parallel()
	minute := lock.TickMinute(time.Date(2026, 3, 29, 2, 30, 59, 0, time.FixedZone("CEST", 2*3600)))
	if minute != 29579070 {
		t.Fatalf("minute %d", minute)
	}
	for name, k := range map[string]lock.Key{"ns/{a}": {Name: "ns/{a}"}, "raw {a}": {Name: "raw {a}", Raw: true}} {
		tick := k.At(minute)
		if tick.Plain() != k || tick == k || tick.String() != name+":tick:29579070" || !strings.HasSuffix(tick.Encoded(), ":tick:29579070") {
			t.Errorf("%+v is written %q and %q", tick, tick.String(), tick.Encoded())
		}
		tick.Series = "a"
		if tick.Plain() != k || tick.String() != name+":of:a:tick:29579070" || !strings.HasSuffix(tick.Encoded(), ":of:a:tick:29579070") {
			t.Errorf("%+v is written %q and %q", tick, tick.String(), tick.Encoded())
		}
	}
}

func TestATickThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	long := lock.Key{Name: strings.Repeat("x", lock.MaxKeyBytes)}
	for k, fits := range map[lock.Key]bool{
		long.At(29579070): true, {Name: "x", Tick: 1}: true, {Name: "x", Tick: -1}: false, {Name: "x", Tick: 1 << 62}: false, {Tick: 1}: false,
		{Name: "x", Tick: 1, Series: "a-b.c_9"}: true, {Name: "x", Series: "a"}: false, {Name: "x", Tick: 1, Series: "a:b"}: false,
		{Name: "x", Tick: 1, Series: strings.Repeat("x", lock.MaxKeyBytes+1)}: false,
	} {
		if err := k.Validate(); (err == nil) != fits {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func TestStagesLeadForward(t *testing.T) {
	t.Parallel()
	row := [][]lock.Stage{{""}, {lock.StageClaimed}, {lock.StageStarted}, {lock.StageSucceeded, lock.StageFailed}}
	for i, earlier := range row {
		for j, later := range row {
			for _, a := range earlier {
				for _, b := range later {
					if a.Before(b) != (i < j) {
						t.Errorf("%q before %q: %v", a, b, a.Before(b))
					}
				}
			}
		}
		for _, s := range earlier {
			if s.Begun() != (i >= 2) || s.Over() != (i == 3) || (s.ValidateStamp() == nil) != (i >= 2) {
				t.Errorf("%q: begun %v, over %v, %v", s, s.Begun(), s.Over(), s.ValidateStamp())
			}
		}
	}
}

func TestErrorsAboutTicksSayWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	k := lock.Key{Name: "k"}.At(7)
	seen := lock.View{Key: k, State: lock.ViewHeld, Owner: "away/x/1", Stage: lock.StageStarted, Newest: 9}
	for want, err := range map[string]error{
		"k:tick:7: too old to run: due more than 24h0m0s ago":        &lock.TooOldError{Key: k, Why: lock.TooOldAge, Seen: seen},
		"k:tick:7: too old to run: the tick of minute 9 was started": &lock.TooOldError{Key: k, Why: lock.TooOldSuperseded, Seen: seen},
		"k:tick:7: not put back: it is started by away/x/1":          &lock.StartedError{Key: k, Seen: seen},
		"k:tick:7: started by away/x/1":                              &lock.HeldError{Key: k, Seen: seen},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
		for _, class := range []error{lock.ErrLost, lock.ErrUnknown} {
			if errors.Is(err, class) {
				t.Errorf("%v is %v", err, class)
			}
		}
	}
}
