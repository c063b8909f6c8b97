package redisnode

import (
	"net/url"
	"strings"

	"github.com/conch-dev/conch/pkg/lock"
)

// layoutVersion is what conch:meta says. Raise it with any change that an older release would misread.
const layoutVersion = "1"

// rawMark keeps the helpers of a raw key apart from those of a scoped key with the same text. It follows the tag because braces cannot
// stand in a scoped name, and anything can in a raw one.
const rawMark = "}:raw:"

// layout names what a lock has in the store.
type layout struct{ prefix string }

func (l layout) lock(k lock.Key) string {
	if k.Raw {
		return k.Name
	}
	return l.prefix + "{" + k.Encoded() + "}"
}

func (l layout) helper(k lock.Key, name string) string {
	if k.Raw {
		return l.prefix + "{" + k.Name + rawMark + name
	}
	return l.lock(k) + ":" + name
}

// keys are the KEYS of every script of a lock.
func (l layout) keys(k lock.Key) []string {
	return []string{l.lock(k), l.helper(k, "fence"), l.helper(k, "last")}
}

func (l layout) meta() string              { return l.prefix + "meta" }
func (l layout) cluster(id string) string  { return l.prefix + "cluster:" + id }
func (l layout) channel(k lock.Key) string { return l.helper(k, "released") }

// channels is the pattern of all channels. A right to subscribe to a pattern is a right to that very text, so this is the text that rights
// are given for, and keyOf leaves out what else there may be.
func (l layout) channels() string { return escapeGlob(l.prefix) + "*" }

// keyOf reads a channel's name back.
func (l layout) keyOf(channel string) (lock.Key, bool) {
	name, ok := strings.CutPrefix(channel, l.prefix+"{")
	if !ok {
		return lock.Key{}, false
	}
	if raw, ok := strings.CutSuffix(name, rawMark+"released"); ok {
		return lock.Key{Name: raw, Raw: true}, true
	}
	encoded, ok := strings.CutSuffix(name, "}:released")
	if !ok {
		return lock.Key{}, false
	}
	scoped, err := url.PathUnescape(encoded)
	return lock.Key{Name: scoped}, err == nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
