package memory

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Flush forgets everything, as a restart without persistence does.
func (b *Backend) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.keys)
	clear(b.clusters)
}

// Delete removes the key alone, as an operator's DEL does. What the store remembers about it stays.
func (b *Backend) Delete(k lock.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, _ := b.entry(k)
	e.value = nil
}

// Plant puts a value under the key that nobody asked for. Kind is string, hash and so on; a ttl of zero means no expiry. A string in the
// form of a token is read as one.
func (b *Backend) Plant(k lock.Key, kind, text string, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, now := b.entry(k)
	v := &value{kind: kind}
	if k.Tick != 0 {
		if owner, number, stage, ok := parseTickToken(lock.Token(text)); ok && kind == "string" {
			v.owner, v.fence, v.stage = owner, number, stage
		}
	} else if token, released := strings.CutPrefix(text, "released/"); kind == "string" {
		if owner, number, ok := parseToken(lock.Token(token)); ok {
			v.owner, v.fence, v.released = owner, number, released
		}
	}
	if ttl > 0 {
		v.expires = now.Add(ttl)
	}
	e.value = v
}

// SetFence makes text the highest fencing token that is stored for the key, and the only thing that is known of earlier tenures. Empty
// removes that too.
func (b *Backend) SetFence(k lock.Key, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, now := b.entry(k)
	e.fence, e.last = fence{text: text, expires: now.Add(remember)}, nil
}

// Snapshot is a copy of the store, such as a lagging replica has.
type Snapshot struct {
	keys     map[lock.Key]*entry
	clusters map[string]string
}

// Snapshot copies the store.
func (b *Backend) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Snapshot{keys: copied(b.keys), clusters: maps.Clone(b.clusters)}
}

// Restore brings the store back to an earlier state, as a failover to a lagging replica does.
func (b *Backend) Restore(s Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys, b.clusters = copied(s.keys), maps.Clone(s.clusters)
}

func copied(keys map[lock.Key]*entry) map[lock.Key]*entry {
	out := make(map[lock.Key]*entry, len(keys))
	for name, e := range keys {
		c := *e
		if e.value != nil {
			v := *e.value
			c.value = &v
		}
		if e.last != nil {
			l := *e.last
			c.last = &l
		}
		c.book.started = slices.Clone(e.book.started)
		out[name] = &c
	}
	return out
}
