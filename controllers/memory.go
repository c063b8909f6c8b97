package controllers

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// memory is what one process remembers about one lock between passes, beside the API objects.
// Losing it costs time, never safety: waits start over, and attempts are found in the store.
type memory struct {
	// attempt is the owner that this process contends as, if it does.
	attempt *attempt
	// kept is the grant that this process keeps because a status or a record named it.
	kept *kept
	// leaving are entries that were called off and are forgotten once they are out of the store.
	leaving map[keeper.ID]string
	// vanished and unlabelled are when a candidate's object, or its leader label, was first missed.
	vanished   map[types.UID]time.Time
	unlabelled map[types.UID]time.Time
	// heard is what was heard of a vanished candidate's node since it vanished.
	heard map[types.UID]heartbeat
	// told is the advice that an Event gave, and that is still true.
	told map[string]struct{}
	// outdated counts the writes in a row that were refused because the cache lags behind.
	outdated int
	// missingSince is when a lock that pods wait for was first seen not to exist.
	missingSince time.Time
	// backOff is how long the candidates of one revision stand back after giving the lock up.
	backOff map[string]backOff
	// unready is since when a candidate has not been running steadily.
	unready map[types.UID]time.Time
	// ticks are the entries of scheduled runs, by the UID of the Job, and unseen the Jobs that this process
	// resumed and has watched since, without a sign of a process.
	ticks  map[string]tickEntry
	unseen map[types.UID]bool
	// terms are the effective values of the newest pass, for when the object is gone.
	terms *terms
	// last is the status of the newest pass that had an object, and orphan the one that takes its
	// place while the holder of a lock without object is being ended.
	last   plan.Status
	orphan plan.Status
}

// bury forgets what was remembered of a candidate whose tenure is over, and back-offs long past.
func (m *memory) bury(uid types.UID, now time.Time) {
	clear(m.vanished) // the holder's, and that of its pods
	clear(m.heard)
	delete(m.unlabelled, uid)
	for kin, b := range m.backOff {
		if now.Sub(b.until) > backOffKept {
			delete(m.backOff, kin)
		}
	}
}

type attempt struct {
	id         keeper.ID
	keeper     string
	candidate  plan.Holder
	since      time.Time
	continuing bool
	// request and terms are what the keeper was last told to ask for.
	request lock.Request
	terms   keeper.Terms
	// epoch is the term in which the attempt began. In a later one it may have been cleared away by
	// whoever decided in between.
	epoch int64
}

type kept struct {
	id     keeper.ID
	keeper string
	since  time.Time
	terms  keeper.Terms
}

// heartbeat is what a node's Lease said last, by the kubelet's clock, and when this process first and
// last saw it change, by its own.
type heartbeat struct {
	renewed     time.Time
	first, last time.Time
}

type backOff struct {
	times int
	until time.Time
	// gaveUp is true if the revision had the lock and was not running in time.
	gaveUp bool
}

const (
	backOffFirst = 30 * time.Second
	backOffMost  = 10 * time.Minute
	// backOffKept is how long a back-off is remembered after it ended.
	backOffKept = 24 * time.Hour
)

// next doubles the back-off, from half a minute to ten.
func (b backOff) next(now time.Time, gaveUp bool) backOff {
	pause := backOffFirst << min(b.times, 5)
	return backOff{times: b.times + 1, until: now.Add(min(pause, backOffMost)), gaveUp: b.gaveUp || gaveUp}
}

// kindred names what a candidate shares with those that would fare like it: one revision of one workload.
func kindred(c plan.Candidate) string { return c.Group + "/" + strconv.FormatInt(c.Revision, 10) }

// memories holds one memory a lock. A lock's own passes never overlap, so only the map is guarded.
type memories struct {
	mu sync.Mutex // guards m
	m  map[types.NamespacedName]*memory
}

func newMemories() *memories { return &memories{m: map[types.NamespacedName]*memory{}} }

func (m *memories) of(name types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	mem, ok := m.m[name]
	if !ok {
		mem = &memory{
			leaving: map[keeper.ID]string{},
			ticks:   map[string]tickEntry{}, unseen: map[types.UID]bool{},
			vanished: map[types.UID]time.Time{}, unlabelled: map[types.UID]time.Time{}, backOff: map[string]backOff{},
			unready: map[types.UID]time.Time{},
			heard:   map[types.UID]heartbeat{}, told: map[string]struct{}{},
		}
		m.m[name] = mem
	}
	return mem
}

func (m *memories) drop(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, name)
}

func (m *memories) names() []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(m.m))
	for name := range m.m {
		out = append(out, name)
	}
	return out
}

// firstSeen remembers when something was first the case, and forgets it once it is not.
func firstSeen(m map[types.UID]time.Time, uid types.UID, yes bool, now time.Time) time.Time {
	if !yes {
		delete(m, uid)
		return time.Time{}
	}
	if _, known := m[uid]; !known {
		m[uid] = now
	}
	return m[uid]
}

// grantOf is the grant that a status describes. It carries no validity: only an answer of the
// store gives one.
func grantOf(key lock.Key, st plan.Status, ttl time.Duration) lock.Grant {
	return lock.Grant{
		Key: key, Owner: lock.Owner(st.Holder.Owner), Token: lock.Token(st.Token),
		FencingToken: lock.FencingToken(st.FencingToken), TTL: ttl,
	}
}
