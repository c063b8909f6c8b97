package identity

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/conch-dev/conch/pkg/lock"
)

// watch looks at one store.
type watch struct {
	g       *Guard
	backend string
	store   lock.Announcer
	log     logr.Logger

	// term is the term whose name was written; another one begins afresh.
	term int64
	// suspect is a name that is not ours, read when our Lease was not confirmed yet.
	suspect   string
	suspected time.Time
	// calm counts the looks since a conflict that found our name.
	calm int
}

func (w *watch) run(ctx context.Context, wake <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
		}
		timer.Reset(w.look(ctx))
	}
}

// look does one round and returns how long to wait for the next one.
func (w *watch) look(ctx context.Context) time.Duration {
	soon, every := w.g.opts.Every/looksPerEvery, w.g.opts.Every
	election := w.g.opts.Election
	if !election.Deciding() {
		w.forget()
		return every
	}
	term := election.Epoch()
	there, err := w.store.Announce(ctx, w.g.opts.Cluster, w.g.opts.Name, false)
	switch {
	case err != nil:
		w.log.V(1).Info("Looking for another cluster of this identity", "error", err.Error())
		return soon
	case !election.Deciding() || election.Epoch() != term:
		return soon
	case there == w.g.opts.Name:
		w.ours(term)
		return every
	case term != w.term && w.g.known(there):
		return w.announce(ctx, term)
	}
	return w.stranger(ctx, there, term)
}

// forget drops what was found: a replica that does not decide has no verdict.
func (w *watch) forget() {
	w.term, w.suspect, w.calm = 0, "", 0
	w.g.set(w.backend, "")
}

func (w *watch) ours(term int64) {
	w.term, w.suspect = term, ""
	if w.calm++; w.calm < calm {
		return
	}
	if w.g.set(w.backend, "") {
		w.log.Info("This cluster's identity is its own again")
	}
}

// announce writes our name where a predecessor's stands, or a rival's.
func (w *watch) announce(ctx context.Context, term int64) time.Duration {
	if _, err := w.store.Announce(ctx, w.g.opts.Cluster, w.g.opts.Name, true); err != nil {
		w.log.V(1).Info("Writing this decider's name", "error", err.Error())
		return w.g.opts.Every / looksPerEvery
	}
	w.term = term
	return w.g.opts.Every
}

// stranger deals with a name that is not ours. It is a rival's once our Lease was confirmed later;
// in a conflict that is known, an answer without delay keeps it known to both sides.
func (w *watch) stranger(ctx context.Context, there string, term int64) time.Duration {
	w.calm = 0
	if w.suspect == "" {
		w.suspect, w.suspected = there, time.Now()
	}
	if !w.g.conflictIn(w.backend) && !w.g.opts.Election.Confirmed().After(w.suspected) {
		return w.g.opts.Every / looksPerEvery
	}
	w.suspect = ""
	if w.g.set(w.backend, there) {
		w.log.Info("Another cluster uses this cluster's identity", "cluster", w.g.opts.Cluster, "rival", there)
	}
	return w.announce(ctx, term)
}
