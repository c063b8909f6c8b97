package redisnode

import (
	"net/url"
	"strconv"
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
	switch {
	case k.Tick != 0:
		return l.helper(k.At(0), tickName(k))
	case k.Raw:
		return k.Name
	}
	return l.prefix + "{" + k.Encoded() + "}"
}

func (l layout) helper(k lock.Key, name string) string {
	switch {
	case k.Tick != 0:
		return l.helper(k.At(0), tickName(k)+":"+name)
	case k.Series != "":
		return l.helper(k.Plain(), "of:"+k.Series+":"+name)
	case k.Raw:
		return l.prefix + "{" + k.Name + rawMark + name
	}
	return l.lock(k) + ":" + name
}

func tickName(k lock.Key) string { return "tick:" + strconv.FormatInt(k.Tick, 10) }

// keys are the KEYS of every script of a lock.
func (l layout) keys(k lock.Key) []string {
	return []string{l.lock(k), l.helper(k, "fence"), l.helper(k, "last")}
}

// tickKeys are the KEYS of every script of a tick.
func (l layout) tickKeys(k lock.Key) []string {
	plain := k.Plain()
	return []string{
		l.lock(k), l.tickFence(plain), l.helper(k.At(0), "tick:newest"), l.helper(k, "back"), l.helper(plain, "fence"), l.helper(k, "taken"),
		l.helper(plain, "tick:settle"),
	}
}

// tickFence is shared by the ticks of a key.
func (l layout) tickFence(k lock.Key) string { return l.helper(k, "tick:fence") }

// waiting tells a holder that another home waits.
func (l layout) waiting(k lock.Key) string { return l.helper(k, "waiting") }

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
	name, ok = strings.CutSuffix(name, ":released")
	if !ok {
		return lock.Key{}, false
	}
	name, series, minute := cutTick(name)
	if raw, ok := strings.CutSuffix(name, strings.TrimSuffix(rawMark, ":")); ok {
		return lock.Key{Name: raw, Raw: true, Tick: minute, Series: series}, true
	}
	encoded, ok := strings.CutSuffix(name, "}")
	if !ok {
		return lock.Key{}, false
	}
	scoped, err := url.PathUnescape(encoded)
	return lock.Key{Name: scoped, Tick: minute, Series: series}, err == nil
}

// cutTick takes the tick off the end of a name, and the series before it. What stands before them ends a name, so a name that only looks
// like a tick keeps it.
func cutTick(name string) (head, series string, minute int64) {
	i := strings.LastIndex(name, ":tick:")
	if i < 0 {
		return name, "", 0
	}
	n, err := strconv.ParseUint(name[i+len(":tick:"):], 10, 63)
	if err != nil {
		return name, "", 0
	}
	head = name[:i]
	if j := strings.LastIndex(head, ":of:"); j >= 0 && endsName(head[:j]) && !strings.ContainsAny(head[j+len(":of:"):], ":}") {
		head, series = head[:j], head[j+len(":of:"):]
	}
	if !endsName(head) {
		return name, "", 0
	}
	return head, series, int64(n)
}

func endsName(s string) bool { return strings.HasSuffix(s, "}") || strings.HasSuffix(s, "}:raw") }

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
