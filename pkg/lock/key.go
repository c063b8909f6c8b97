package lock

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKeyBytes bounds a key's name as it stands in the store.
const MaxKeyBytes = 253

// seriesLetters is what a series is made of.
const seriesLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// maxTick is in the year 9999.
const maxTick = 4_223_371_680

// Key names a lock in a store. A raw key stands there byte for byte, so that programs which know
// nothing of conch can share it; any other is placed under the backend's prefix.
type Key struct {
	Name string
	Raw  bool
	// Tick, if set, names one scheduled run of the key instead of the key itself: the minute since 1970
	// in UTC that it is due in.
	Tick int64
	// Series, for a tick, tells schedules apart that share the key: their ticks of one minute are different ones, and are not ordered.
	Series string
}

// String returns the name, for logs and messages.
func (k Key) String() string { return k.Name + k.tickSuffix() }

// Validate reports why the key cannot be used, or nil.
func (k Key) Validate() error {
	switch {
	case k.Name == "":
		return errors.New("lock key is empty: give it a name")
	case len(k.Plain().Encoded()) > MaxKeyBytes:
		return fmt.Errorf("lock key has %d bytes: at most %d fit", len(k.Plain().Encoded()), MaxKeyBytes)
	case k.Tick < 0 || k.Tick > maxTick:
		return fmt.Errorf("tick %d: write the minute since 1970, up to %d", k.Tick, maxTick)
	case k.Series != "" && k.Tick == 0:
		return errors.New("series: only a tick belongs to one")
	case len(k.Series) > MaxKeyBytes || strings.Trim(k.Series, seriesLetters) != "":
		return fmt.Errorf("series %q: write at most %d letters, digits, dots, dashes and underscores", k.Series, MaxKeyBytes)
	case !utf8.ValidString(k.Name):
		return errors.New("lock key is not valid UTF-8: use text")
	}
	return nil
}

// Encoded is the name with the characters that would break a hash tag or a log line
// percent-escaped. A raw key is returned as it is. The minute of a tick stands behind it.
func (k Key) Encoded() string {
	if k.Raw {
		return k.String()
	}
	var b strings.Builder
	for i := 0; i < len(k.Name); i++ {
		if c := k.Name[i]; c == '%' || c == '{' || c == '}' || c < 0x20 || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + k.tickSuffix()
}
