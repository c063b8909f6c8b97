package nodeagent

import "sync"

// changes wakes everyone who waits whenever something changed that no pod update tells: a knob, a node, a ConfigMap.
type changes struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

func newChanges() *changes { return &changes{next: make(chan struct{})} }

// wait returns a channel that the next change closes. Ask for it before looking at the state.
func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// fire wakes all who wait.
func (c *changes) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// mailbox holds the newest value only. One goroutine puts, one takes.
type mailbox[T any] chan T

func newMailbox[T any]() mailbox[T] { return make(mailbox[T], 1) }

// put replaces what was not taken yet.
func (m mailbox[T]) put(v T) {
	select {
	case <-m:
	default:
	}
	m <- v
}
