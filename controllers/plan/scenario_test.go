package plan_test

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/controllers/plan"
)

// cutOffHolder is a world in which the node of the only holder cannot be reached, its process works
// on, and Kubernetes has evicted the pod.
func cutOffHolder(t *testing.T, rules plan.Lock) (*world, string) {
	t.Helper()
	w := newWorld(1, 1, plan.Exclusive, rules)
	s := w.sites[0]
	for range 60 {
		w.second()
	}
	uid := s.status.Holder.UID
	o := s.find(uid)
	if o == nil || o.on == nil {
		t.Fatalf("nobody works after a minute: %+v", s.status)
	}
	o.on.up = false
	s.delete(w.now, o, o.Body.Grace)
	return w, uid
}

func (w *world) lives(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end) && len(w.broken) == 0; {
		w.second()
	}
}

// TestANodeThatStaysAway: case C39, over time.
func TestANodeThatStaysAway(t *testing.T) {
	tests := map[string]struct {
		rules   func(*plan.Lock)
		confirm bool
		want    int // processes that work half an hour later, the cut off one included
	}{
		"Hold waits":                   {want: 1},
		"Release goes on without it":   {rules: func(l *plan.Lock) { l.ReleaseLost = true }, want: 2},
		"an operator confirms it dead": {confirm: true, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rules := lockRules()
			if tc.rules != nil {
				tc.rules(&rules)
			}
			w, uid := cutOffHolder(t, rules)
			w.lives(time.Minute)
			if tc.confirm {
				w.rules.DeadConfirmed = w.sites[0].status.FencingToken
				w.nodesChanged()
				w.procs(uid).acting = false // what the operator vouches for
				tc.want--
			}
			w.lives(30 * time.Minute)
			if got := w.acting(); len(got) != tc.want || len(w.broken) > 0 {
				t.Fatalf("%v work, want %d; %v\n%s", got, tc.want, w.broken, w.story())
			}
			w.acts = 0
			w.lives(10 * time.Minute)
			if w.acts > 0 {
				t.Errorf("%d effects where nothing changes\n%s", w.acts, w.story())
			}
			w.heal()
			w.lives(5 * time.Minute)
			if got := w.acting(); len(got) != 1 {
				t.Errorf("the node is back, and %v work\n%s", got, w.story())
			}
		})
	}
}

func (w *world) procs(uid string) *proc { return w.sites[0].procs[uid] }

// TestAHandOverTakesOneTurn: the whole life of two tenures, effect by effect.
func TestAHandOverTakesOneTurn(t *testing.T) {
	w := newWorld(2, 1, plan.Exclusive, lockRules())
	s := w.sites[0]
	w.lives(time.Minute)
	before := s.status
	w.rules.ReleaseAsked = before.FencingToken
	w.nodesChanged()
	w.lives(2 * time.Minute)
	after := s.status
	switch {
	case len(w.broken) > 0:
		t.Fatalf("%v\n%s", w.broken, w.story())
	case before.State != plan.Held || after.State != plan.Held || before.Holder.UID == after.Holder.UID || after.FencingToken <= before.FencingToken:
		t.Errorf("before %+v, after %+v\n%s", before, after, w.story())
	case len(w.acting()) != 1:
		t.Errorf("%v work", w.acting())
	}
}
