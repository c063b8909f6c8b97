package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/conch-dev/conch/test/ledger"
)

// judge joins what is wrong with a history: two that worked at the same time, tokens that did not
// rise, and refusals that no pause explains. A paused process does nothing, so its interval ends when
// it stands still; what it does with its stale belief when it goes on is the witness's to refuse.
func judge(entries []ledger.Entry, spans []ledger.Span, pauses []pause) error {
	sorted := inTime(entries)
	errs := []error{ledger.Check(whole(sorted))}
	var highest int64
	for _, s := range spans {
		switch {
		case s.Accepted && s.Token < highest:
			errs = append(errs, fmt.Errorf("the witness took token %d of %s after %d", s.Token, s.Writer, highest))
		case !s.Accepted && !excused(s, sorted, pauses):
			errs = append(errs, fmt.Errorf("%s wrote with the old token %d at %s, and was not paused in that piece of work", s.Writer, s.Token, s.First))
		}
		highest = max(highest, s.Token)
	}
	return errors.Join(errs...)
}

// inTime sorts by what the entries say: a process that was paused before it could write an entry
// writes it late.
func inTime(entries []ledger.Entry) []ledger.Entry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b ledger.Entry) int { return cmp.Compare(a.At, b.At) })
	return sorted
}

// whole joins the pieces of one tenure that nobody else's entry stands between, which keeps a long
// history quick to judge. A stop of what had stopped already, by a pause, says nothing.
func whole(entries []ledger.Entry) []ledger.Entry {
	var out []ledger.Entry
	newest, works := map[int]ledger.Entry{}, map[int]bool{}
	for _, e := range entries {
		n := len(out) - 1
		switch {
		case e.Kind != ledger.Start && !works[e.PID]:
		case e.Kind != ledger.Start:
			out, works[e.PID] = append(out, e), false
		case n >= 0 && out[n].Kind == ledger.Stop && out[n].PID == e.PID && newest[e.PID].PodUID == e.PodUID && newest[e.PID].Token == e.Token:
			out, works[e.PID] = out[:n], true
		default:
			out, works[e.PID], newest[e.PID] = append(out, e), true, e
		}
	}
	return out
}

// excused tells whether the writer was paused between the begin of that piece of work and the refusal.
func excused(s ledger.Span, entries []ledger.Entry, pauses []pause) bool {
	var begin ledger.Entry
	for _, e := range entries {
		if e.Kind == ledger.Start && e.PodUID == s.Writer && e.At <= s.First {
			begin = e
		}
	}
	return begin.PID != 0 && slices.ContainsFunc(pauses, func(p pause) bool {
		return p.pid == begin.PID && p.to >= begin.At && p.from <= s.First
	})
}

func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	start := func(at time.Duration, pid int, owner string, token int64) ledger.Entry {
		return ledger.Entry{Kind: ledger.Start, At: at, PID: pid, Key: "k", PodUID: owner, Token: token}
	}
	stop := func(at time.Duration, pid int) ledger.Entry { return ledger.Entry{Kind: ledger.Stop, At: at, PID: pid} }
	refused := []ledger.Span{{Writer: "a", Token: 5, First: 50}}
	tests := map[string]struct {
		entries []ledger.Entry
		spans   []ledger.Span
		pauses  []pause
		wrong   bool
	}{
		"one after the other is right": {entries: []ledger.Entry{start(1, 1, "a", 5), stop(2, 1), start(3, 1, "a", 5), stop(4, 1), start(5, 2, "b", 6), stop(6, 2)}},
		"two at once are wrong":        {entries: []ledger.Entry{start(1, 1, "a", 5), start(5, 2, "b", 6), stop(6, 1), stop(7, 2)}, wrong: true},
		"two at once are wrong also in a later piece": {entries: []ledger.Entry{
			start(1, 1, "a", 5), stop(2, 1), start(2, 1, "a", 5), start(3, 2, "b", 6), stop(4, 1), stop(5, 2),
		}, wrong: true},
		"two at once are wrong also in a piece after a pause": {entries: []ledger.Entry{
			start(1, 1, "a", 5), stop(2, 1), stop(3, 1), start(4, 1, "a", 5), start(5, 2, "b", 6), stop(6, 1), stop(7, 2),
		}, wrong: true},
		"a former holder that works again is wrong": {entries: []ledger.Entry{
			start(1, 1, "a", 5), stop(2, 1), start(3, 2, "b", 6), stop(4, 2), start(5, 1, "a", 5), stop(6, 1),
		}, wrong: true},
		"a token that falls is wrong":           {entries: []ledger.Entry{start(1, 1, "a", 6), stop(2, 1), start(3, 2, "b", 5), stop(4, 2)}, wrong: true},
		"work ends where the process is paused": {entries: []ledger.Entry{start(1, 1, "a", 5), stop(2, 1), start(5, 2, "b", 6), stop(6, 2), stop(7, 1)}},
		"a start noted after the pause is where it was": {entries: []ledger.Entry{
			stop(2, 1), start(5, 2, "b", 6), stop(6, 2), start(1, 1, "a", 5), stop(7, 1),
		}},
		"a refusal without a pause is wrong": {entries: []ledger.Entry{start(40, 1, "a", 5), stop(51, 1)}, spans: refused, wrong: true},
		"a refusal after a pause is right": {
			entries: []ledger.Entry{start(10, 1, "a", 5), stop(20, 1), stop(51, 1)}, spans: refused, pauses: []pause{{pid: 1, from: 19, to: 49}},
		},
		"a pause before that piece is no excuse": {
			entries: []ledger.Entry{start(40, 1, "a", 5), stop(51, 1)}, spans: refused, pauses: []pause{{pid: 1, from: 19, to: 39}}, wrong: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := judge(tc.entries, tc.spans, tc.pauses); (err != nil) != tc.wrong {
				t.Errorf("got %v, want wrong: %t", err, tc.wrong)
			}
		})
	}
}
