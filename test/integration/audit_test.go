package integration

import (
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/rig"
)

// writesIn matches what conch writes in one namespace.
func writesIn(ns string) func(cluster.AuditEvent) bool {
	byConch := cluster.Writes(rig.User)
	return func(e cluster.AuditEvent) bool { return byConch(e) && e.Namespace == ns }
}
