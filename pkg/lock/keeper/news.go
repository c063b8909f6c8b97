package keeper

import (
	"container/list"
	"context"
	"sync"
)

// news holds what the reader of Events has not heard of yet, each ID once.
type news struct {
	out     chan Event
	changed chan struct{}

	mu            sync.Mutex // guards what follows; taken inside the keeper's own
	urgent, plain list.List  // of ID, oldest first
	untold        map[ID]untold
}

type untold struct {
	urgent bool
	at     *list.Element
}

func newNews() *news {
	return &news{out: make(chan Event), changed: make(chan struct{}, 1), untold: map[ID]untold{}}
}

// add notes that there is something to tell about an ID.
func (n *news) add(id ID, urgent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if u, known := n.untold[id]; !known || urgent && !u.urgent {
		n.remove(id)
		n.untold[id] = untold{urgent: urgent, at: n.row(urgent).PushBack(id)}
	}
	n.kick()
}

// drop removes what is untold about an ID.
func (n *news) drop(id ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(id)
}

// kick makes the pump look again.
func (n *news) kick() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// pump hands events to the reader until ctx ends, and calls look whenever anything changed. An
// event is taken out before it is offered, so that news which come in that moment are told again;
// it is put back where something else may have to go first.
func (n *news) pump(ctx context.Context, look func()) {
	defer close(n.out)
	for {
		look()
		e, ok := n.take()
		out := n.out
		if !ok {
			out = nil
		}
		select {
		case out <- e:
		case <-n.changed:
			if ok {
				n.putBack(e)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (n *news) take() (Event, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	front, urgent := n.urgent.Front(), true
	if front == nil {
		front, urgent = n.plain.Front(), false
	}
	if front == nil {
		return Event{}, false
	}
	id := front.Value.(ID)
	n.remove(id)
	return Event{ID: id, Urgent: urgent}, true
}

func (n *news) putBack(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if u, known := n.untold[e.ID]; !known || e.Urgent && !u.urgent {
		n.remove(e.ID)
		n.untold[e.ID] = untold{urgent: e.Urgent, at: n.row(e.Urgent).PushFront(e.ID)}
	}
}

func (n *news) row(urgent bool) *list.List {
	if urgent {
		return &n.urgent
	}
	return &n.plain
}

func (n *news) remove(id ID) {
	if u, known := n.untold[id]; known {
		n.row(u.urgent).Remove(u.at)
		delete(n.untold, id)
	}
}
