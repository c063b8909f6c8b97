package memory

import (
	"context"

	"github.com/conch-dev/conch/pkg/lock"
)

// Notify hints at every release until ctx ends, and calls missed once at the beginning. See lock.Notifier.
func (b *Backend) Notify(ctx context.Context, hint func(lock.Key), missed func()) error {
	b.mu.Lock()
	id := b.next
	b.next++
	b.listeners[id] = listener{hint: hint, missed: missed}
	b.mu.Unlock()
	missed()
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, id)
	return nil
}

// Miss tells every listener that hints may have been lost, as after a broken connection.
func (b *Backend) Miss() {
	for _, l := range b.heard() {
		l.missed()
	}
}

func (b *Backend) tell(key lock.Key) {
	for _, l := range b.heard() {
		l.hint(key)
	}
}

// heard copies the listeners, so that they are called without the mutex.
func (b *Backend) heard() []listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	listeners := make([]listener, 0, len(b.listeners))
	for _, l := range b.listeners {
		listeners = append(listeners, l)
	}
	return listeners
}

// Describe says that there is no server. See lock.Describer.
func (b *Backend) Describe(ctx context.Context) (lock.Facts, error) {
	if err := b.enter(ctx, "describe", lock.Key{}); err != nil {
		return lock.Facts{}, err
	}
	return lock.Facts{Server: "memory", Role: "master"}, nil
}

// Announce writes down who decides for a cluster. See lock.Announcer.
func (b *Backend) Announce(ctx context.Context, id, nonce string, takeover bool) (string, error) {
	if err := b.enter(ctx, "announce", lock.Key{Name: id}); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clusters[id] == "" || takeover {
		b.clusters[id] = nonce
	}
	return b.clusters[id], nil
}
