// Package naming gives a workload's own lock its name. Every cluster of a clusterSet computes the same one.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// longest is the length of a DNS subdomain, the most that an object's name may have.
	longest = 253
	// kept and hashed are how much of a longer name stays, and how many hex digits tell it from others.
	kept, hashed = longest - hashed - 1, 10
)

// Lock is the name of the lock that a workload gets which names none: `<kind>-<name>` in lower case. Longer
// ones are cut and hashed, so that two of them never share a lock by accident.
func Lock(kind, name string) string {
	whole := strings.ToLower(kind) + "-" + strings.ToLower(name)
	if len(whole) <= longest {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	// A label ends and begins with a letter or digit, so the cut must not come after a dot or dash.
	return strings.TrimRight(whole[:kept], "-.") + "-" + hex.EncodeToString(sum[:])[:hashed]
}
