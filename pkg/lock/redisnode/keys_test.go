package redisnode

import (
	"testing"

	"github.com/conch-dev/conch/pkg/lock"
)

// awkward are names that a careless layout would mix up (C71, C135).
var awkward = []string{
	"a", "a:fence", "a:last", "a:released", "a}", "{a", "{a}", "a{b}c", "{}x", "}{", "%7Ba", "a b", "a\n", "\x00", "raw", "a}:raw", "a}:raw:fence",
	"a}:fence", "meta", "cluster:id", "ä", "\u202eabc", "*", "[x]", "a:raw:released", "}:raw:released", "a}:released",
	"a}:of:a:tick:7", "a}:raw:of:a:tick:7", "a:of:a", "a}:of:a", "a}:raw:of:a", "a:tick:7", "a}:tick:7", "a}:raw:tick:7", "a}:tick:7:released", "a}:raw:tick:7:released", "a}:tick:fence", "tick:newest", "a:waiting",
}

func allKeys() []lock.Key {
	var keys []lock.Key
	for _, name := range awkward {
		plain, raw := lock.Key{Name: name}, lock.Key{Name: name, Raw: true}
		keys = append(keys, plain, raw, plain.At(7), raw.At(7), plain.At(77))
		for _, series := range []string{"a", "raw", "tick", "of"} {
			plain.Series, raw.Series = series, series
			keys = append(keys, plain.At(7), raw.At(7))
		}
	}
	return keys
}

// namesOf are the names that only k has. Those that the ticks of a key share stand with the plain one.
func namesOf(l layout, k lock.Key) []string {
	if k.Tick != 0 {
		return []string{l.lock(k), l.helper(k, "back"), l.channel(k)}
	}
	return append(l.keys(k), l.waiting(k), l.tickFence(k), l.helper(k, "tick:newest"), l.channel(k))
}

func TestChannelsNameTheirKey(t *testing.T) {
	t.Parallel()
	l := layout{prefix: "conch:"}
	for _, k := range allKeys() {
		if got, ok := l.keyOf(l.channel(k)); !ok || got != k {
			t.Errorf("%+v: channel %q is read as %+v, %v", k, l.channel(k), got, ok)
		}
	}
	for _, other := range []string{"", "conch:", "conch:meta", "conch:{a", "conch:{a}", "other:{a}:released", "conch:{%zz}:released"} {
		if got, ok := l.keyOf(other); ok {
			t.Errorf("channel %q is read as %+v", other, got)
		}
	}
}

func TestNoTwoKeysShareAnything(t *testing.T) {
	t.Parallel()
	l := layout{prefix: "conch:"}
	owners := map[string]lock.Key{}
	for _, k := range allKeys() {
		for _, name := range namesOf(l, k) {
			if other, taken := owners[name]; taken {
				t.Errorf("%+v and %+v share %q", k, other, name)
			}
			owners[name] = k
		}
	}
	for _, name := range []string{l.meta(), l.cluster("id")} {
		if k, taken := owners[name]; taken && !k.Raw {
			t.Errorf("%+v stands at %q", k, name)
		}
	}
}
