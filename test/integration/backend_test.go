package integration

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

// Each fault of a backend is one reason in the condition, keeps the replica from being ready, and
// starts nothing. C131: a password that is set but wrong is told apart from one that is missing.
func TestAFaultOfTheBackendIsAConditionAndKeepsTheReplicaUnready(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		server   []string
		password string
		down     bool
		want     string
	}{
		"no password is configured":          {server: []string{"--requirepass", "right"}, want: "NoAuth"},
		"the password is wrong":              {server: []string{"--requirepass", "right"}, password: "wrong", want: "WrongPass"},
		"the user may not touch conch's key": {server: []string{"--user", "default", "on", "nopass", "~other:*", "&*", "+@all"}, want: "NoPerm"},
		"the server is a replica":            {server: []string{"--replicaof", "127.0.0.1 1"}, want: "ReadOnly"},
		"nobody listens at the address":      {down: true, want: "Unreachable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.redis = redisserver.Start(t, tc.server...)
			if tc.down {
				w.redis.Kill()
			}
			conch := w.east.unready(tc.password)
			w.east.newLock("work")
			w.east.exclusive("work", 1)
			w.Eventually(func() string { return describe(w.east.lock("work")) }, within, look).
				Should(ContainSubstring("BackendReady=False(" + tc.want + ")"))
			w.Expect(conch.IsReady()).To(BeFalse())
			w.Expect(w.east.pods("work")[0].Spec.SchedulingGates).NotTo(BeEmpty())
			if tc.password != "" {
				w.Expect(conch.Log()).NotTo(ContainSubstring(tc.password))
			}
			ledger.Verdict(t, w.ledger)
		})
	}
}

// unready starts a replica without waiting for it to be ready.
func (s *side) unready(password string) *rig.Conch {
	s.w.t.Helper()
	o := rig.Options{
		Cluster: s.cluster, Replica: "conch-0", ClusterID: s.id(), ClusterSet: s.set,
		Redis: s.w.redis.Addr(), Namespaces: []string{s.w.ns}, LeaseName: "conch-" + s.w.ns, Dir: s.w.t.TempDir(),
	}
	if password != "" {
		file := filepath.Join(o.Dir, "password")
		s.w.Expect(os.WriteFile(file, []byte(password+"\n"), 0o600)).To(Succeed())
		o.Extra = "    passwordFile: " + file + "\n"
	}
	c, err := rig.Start(s.w.t.Context(), o)
	s.w.Expect(err).NotTo(HaveOccurred())
	s.conchs = append(s.conchs, c)
	s.w.t.Cleanup(func() { s.end(c) })
	return c
}
