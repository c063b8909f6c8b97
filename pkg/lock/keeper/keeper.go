package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Keeper keeps grants alive. Make it with New and set it going with Run; its other methods may be
// called at any time, also before and after.
type Keeper struct {
	o    Options
	news *news

	renewals, asks, leaves *line

	mu      sync.Mutex // guards what follows, and all entries; never held over a call to anybody
	started bool
	entries map[ID]*entry
	// waiting finds who may be woken by a hint.
	waiting map[lock.Key]map[*entry]struct{}
	// calling has the IDs that an acquire, release or abandon is under way for. It outlives the
	// entry: a forgotten ID that is ordered anew waits for the end of the old call.
	calling map[ID]struct{}
	// ready has what is due for renewal, by class: how long a call may take, and whether the entry
	// had its last answer.
	ready [2 * len(patience)]pile
	// halves are parts of a batch that panicked, to find the one member that did it.
	halves []batch
	// sending has since when each renewer has a batch under way.
	sending map[int]time.Time
	held    int
	pending int // adopted grants without an answer
	health  Health
	called  time.Time // when the newest call to the store ended
}

// New makes a keeper. It starts nothing.
func New(o Options) (*Keeper, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	k := &Keeper{
		o: o.withDefaults(), news: newNews(),
		renewals: newLine(), asks: newLine(), leaves: newLine(),
		entries: map[ID]*entry{}, waiting: map[lock.Key]map[*entry]struct{}{}, calling: map[ID]struct{}{},
		sending: map[int]time.Time{},
	}
	k.o.Random = oneAtATime(k.o.Random)
	for i := range k.ready {
		k.ready[i].before = byDanger
	}
	return k, nil
}

// Run does the keeper's work until ctx ends. Then it renews everything held once more, tries once
// more to carry out the releases and abandons that were ordered, and returns, within about
// Options.CloseTimeout. It releases nothing by itself. Run may be called once.
func (k *Keeper) Run(ctx context.Context) error {
	if !k.start() {
		return errors.New("run keeper: it runs already or has ended")
	}
	// Calls that keep or give back are not cut off by the end of ctx, only by CloseTimeout: a
	// release on a dead context would leave the key to run out.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	var workers sync.WaitGroup
	for n := range k.o.Batches {
		workers.Go(func() { k.renewer(ctx, calls, n) })
	}
	for range k.o.Calls {
		workers.Go(func() { k.asker(ctx) })
		workers.Go(func() { k.leaver(ctx, calls) })
	}
	workers.Go(func() { k.listen(ctx) })
	workers.Go(func() { k.probe(ctx) })
	workers.Go(func() { k.watch(ctx) })
	workers.Go(func() { k.news.pump(ctx, k.reportHeld()) })

	<-ctx.Done()
	timer := time.AfterFunc(k.o.CloseTimeout, cancel)
	defer timer.Stop()
	k.lastRound(calls)
	workers.Wait()
	return nil
}

func (k *Keeper) start() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.started
	k.started = true
	return first
}

// Events tells which entries changed: once for any number of changes since the ID was last read
// from the channel, urgent ones first. Nothing is lost or held up if it is read late or never. The
// channel is closed when Run ends.
func (k *Keeper) Events() <-chan Event { return k.news.out }

// State returns what is known about an entry, and false if there is none.
func (k *Keeper) State(id ID) (State, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[id]
	if !ok {
		return State{}, false
	}
	return e.state(), true
}

// States returns all entries in no order, for debugging.
func (k *Keeper) States() []State {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]State, 0, len(k.entries))
	for _, e := range k.entries {
		all = append(all, e.state())
	}
	return all
}

// enter puts an entry into a phase and keeps the counts that depend on it.
func (k *Keeper) enter(e *entry, p Phase) {
	switch e.phase {
	case PhaseHeld:
		k.held--
		k.answered(e)
	case PhaseWaiting:
		k.unindex(e)
	}
	e.phase = p
	switch p {
	case PhaseHeld:
		k.held++
	case PhaseWaiting:
		k.index(e)
	}
	k.news.kick() // it reports how many are held
}

// answered notes that the store said something about an adopted grant, or that this no longer
// matters.
func (k *Keeper) answered(e *entry) {
	if e.unanswered {
		e.unanswered = false
		k.pending--
	}
}

// place puts an entry where its phase wants it. One that a call is under way for is placed when
// that has ended.
func (k *Keeper) place(e *entry) {
	lift(e)
	_, calling := k.calling[e.id]
	switch {
	case e.phase == PhaseHeld && !e.renewing:
		k.renewals.add(e)
	case calling:
	case e.phase == PhaseWaiting:
		k.asks.add(e)
	case e.phase == PhaseReleasing, e.phase == PhaseAbandoning:
		k.leaves.add(e)
	}
}

// callEnded lets whoever has the ID now go on: e, or an entry that took its place.
func (k *Keeper) callEnded(id ID) {
	delete(k.calling, id)
	if e := k.entries[id]; e != nil {
		k.place(e)
	}
}

// current reports whether e is still the entry of its ID.
func (k *Keeper) current(e *entry) bool { return k.entries[e.id] == e }
