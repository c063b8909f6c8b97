package redisnode

import (
	"testing"

	"github.com/conch-dev/conch/pkg/lock"
)

// awkward are names that a careless layout would mix up (C71, C135).
var awkward = []string{
	"a", "a:fence", "a:last", "a:released", "a}", "{a", "{a}", "a{b}c", "{}x", "}{", "%7Ba", "a b", "a\n", "\x00", "raw", "a}:raw", "a}:raw:fence",
	"a}:fence", "meta", "cluster:id", "ä", "\u202eabc", "*", "[x]", "a:raw:released", "}:raw:released", "a}:released",
}

func allKeys() []lock.Key {
	var keys []lock.Key
	for _, name := range awkward {
		keys = append(keys, lock.Key{Name: name}, lock.Key{Name: name, Raw: true})
	}
	return keys
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
		for _, name := range l.keys(k) {
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
