package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/conch-dev/conch/pkg/lock"
)

// looksPerPatience is how often a backend is examined before its silence counts.
const looksPerPatience = 3

// Patient is a backend to watch.
type Patient struct {
	Address string
	Backend lock.Backend
}

// Watch examines backends for as long as conch runs, logs what changes, and tells whether the
// replica may be called ready.
type Watch struct {
	patients map[string]Patient
	nonce    string
	patience time.Duration

	mu     sync.Mutex // guards the rest
	charts map[string]chart
}

// chart is what is known about one backend.
type chart struct {
	newest Finding
	// well is when an examination that ended well began; zero if none did.
	well time.Time
}

// NewWatch returns a Watch that Run has to drive. A backend that was well counts as such for
// patience longer.
func NewWatch(patients map[string]Patient, nonce string, patience time.Duration) *Watch {
	return &Watch{patients: patients, nonce: nonce, patience: patience, charts: map[string]chart{}}
}

// Run examines all backends until ctx ends. One that does not answer holds up no other one.
func (w *Watch) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for name := range w.patients {
		all.Go(func() { w.follow(ctx, name) })
	}
	all.Wait()
	return nil
}

func (w *Watch) follow(ctx context.Context, name string) {
	log := logr.FromContextOrDiscard(ctx).WithName("backend").WithValues("backend", name)
	tick := time.NewTicker(w.patience / looksPerPatience)
	defer tick.Stop()
	for {
		began := time.Now()
		p := w.patients[name]
		f := Examine(ctx, name, p.Address, p.Backend, w.nonce)
		if ctx.Err() != nil {
			return
		}
		if w.enter(f, began) {
			log.Info("Examined the backend", "ok", f.OK(), "reason", string(f.Reason), "finding", f.String())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// enter records a finding and reports whether it is news.
func (w *Watch) enter(f Finding, began time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.charts[f.Backend]
	now := chart{newest: f, well: before.well}
	if f.OK() {
		now.well = began
	}
	w.charts[f.Backend] = now
	return !known || before.newest.Reason != f.Reason
}

// Findings are the newest ones, by the name of the backend. A backend that was not examined yet is
// missing.
func (w *Watch) Findings() []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(w.charts)) {
		out = append(out, w.charts[name].newest)
	}
	return out
}

// Ready reports what is wrong with backends that were not well for longer than patience.
func (w *Watch) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(w.patients)) {
		c, known := w.charts[name]
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("backend %s (%s): no answer yet", name, w.patients[name].Address))
		case c.newest.OK() || !c.well.IsZero() && time.Since(c.well) <= w.patience:
		default:
			problems = append(problems, errors.New(c.newest.String()))
		}
	}
	return errors.Join(problems...)
}
