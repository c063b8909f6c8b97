package doctor_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/cmd/internal/backends"
	"github.com/conch-dev/conch/cmd/internal/doctor"
	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/test/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "S3cr3t-canary"
	theirs = "0ther-canary"
)

// open is a backend as an operator would configure it.
func open(t *testing.T, address string, change ...func(*settings.Backend)) lock.Backend {
	t.Helper()
	b := settings.Backend{Addresses: []string{address}, Timeout: 500 * time.Millisecond, MaxTTL: time.Hour}
	for _, c := range change {
		c(&b)
	}
	all, err := backends.Open(settings.Settings{KeyPrefix: settings.DefaultKeyPrefix, Backends: map[string]settings.Backend{"default": b}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backends.Close(all) })
	return all["default"]
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func password(t *testing.T, user, password string) func(*settings.Backend) {
	return func(b *settings.Backend) {
		b.PasswordFile = file(t, password)
		if user != "" {
			b.UsernameFile = file(t, user)
		}
	}
}

// closedPort is an address that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// user makes one with just these rights.
func user(t *testing.T, s *redisserver.Server, rules ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "conch", "on", ">" + secret, "resetkeys", "resetchannels", "-@all"}
	for _, r := range rules {
		args = append(args, r)
	}
	s.Do(t, args...)
}

func TestEachFaultOfABackendIsOneClearLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make   func(t *testing.T) (string, lock.Backend)
		reason lock.Reason
		says   string
	}{
		"all is well": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			return s.Addr(), open(t, s.Addr())
		}, "", "Redis "},
		"the password has a line break behind it": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t, "--requirepass", secret)
			return s.Addr(), open(t, s.Addr(), password(t, "", secret+"\n"))
		}, "", "master"},
		"the password is wrong": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t, "--requirepass", theirs)
			return s.Addr(), open(t, s.Addr(), password(t, "", secret))
		}, lock.ReasonWrongPass, "the server refused user or password"},
		"no password is configured": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t, "--requirepass", secret)
			return s.Addr(), open(t, s.Addr())
		}, lock.ReasonNoAuth, "configure user and password"},
		"the password's file is not there": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t, "--requirepass", secret)
			return s.Addr(), open(t, s.Addr(), func(b *settings.Backend) { b.PasswordFile = "/no/such/file" })
		}, lock.ReasonNoAuth, "file /no/such/file cannot be read: no such file or directory"},
		"the user may not run scripts": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			user(t, s, "~conch:*", "&conch:*", "+ping", "+hello", "+client", "+get", "+set", "+time", "+pttl", "+type")
			return s.Addr(), open(t, s.Addr(), password(t, "conch", secret))
		}, lock.ReasonNoPerm, "the user lacks a right"},
		"the user may not use the prefix": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			user(t, s, "~other:*", "&*", "+@all")
			return s.Addr(), open(t, s.Addr(), password(t, "conch", secret))
		}, lock.ReasonNoPerm, "the user lacks"},
		"nobody listens": {func(t *testing.T) (string, lock.Backend) {
			a := closedPort(t)
			return a, open(t, a)
		}, lock.ReasonUnreachable, "check address, network and that the server runs"},
		"the server is stopped": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Cont() })
			return s.Addr(), open(t, s.Addr())
		}, lock.ReasonTimeout, "no answer in time"},
		"a replica answers": {func(t *testing.T) (string, lock.Backend) {
			master := redisserver.Start(t)
			s := redisserver.Start(t)
			s.Do(t, "REPLICAOF", "127.0.0.1", master.Port())
			return s.Addr(), open(t, s.Addr())
		}, lock.ReasonReadOnly, "give the address of the master"},
		"a helper key has another type": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			s.Do(t, "SET", "conch:meta", "not a hash")
			return s.Addr(), open(t, s.Addr())
		}, lock.ReasonWrongType, "delete what took its place"},
		"a cluster answers": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t, "--cluster-enabled", "yes")
			return s.Addr(), open(t, s.Addr())
		}, lock.ReasonMoved, "part of a Redis Cluster"},
		"the server speaks no TLS, and waits for more": {func(t *testing.T) (string, lock.Backend) {
			s := redisserver.Start(t)
			return s.Addr(), open(t, s.Addr(), func(b *settings.Backend) { b.TLS = &settings.TLS{} })
		}, lock.ReasonTimeout, "check that the server speaks TLS there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, b := tc.make(t)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			f := doctor.Examine(ctx, "default", address, b, "test")
			line := f.String()
			t.Log(line)
			result := "ok"
			if tc.reason != "" {
				result = string(tc.reason)
			}
			if f.Reason != tc.reason || !strings.HasPrefix(line, "backend default ("+address+"): "+result+": ") || !strings.Contains(line, tc.says) {
				t.Errorf("got %s", line)
			}
			if strings.ContainsAny(line, "\r\n") || strings.Contains(line, secret) || strings.Contains(line, theirs) {
				t.Errorf("more than one line, or a secret: %q", line)
			}
		})
	}
}

func TestAnExaminationLeavesNoLockBehindAndSharesItWithOthers(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	b := open(t, s.Addr())
	if f := doctor.Examine(t.Context(), "default", s.Addr(), b, "one"); !f.OK() {
		t.Fatal(f)
	}
	if got := s.Do(t, "EXISTS", "conch:{conch-doctor}"); got != int64(0) {
		t.Errorf("the lock was left behind: %v", got)
	}
	if _, err := b.Acquire(t.Context(), lock.Request{Key: lock.Key{Name: "conch-doctor"}, Owner: "conch-doctor/two", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if f := doctor.Examine(t.Context(), "default", s.Addr(), b, "one"); !f.OK() {
		t.Errorf("got %s while another examined", f)
	}
}

func TestAReplicaIsReadyFromTheFirstGoodFindingUntilPatienceIsOver(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	const patience = 1500 * time.Millisecond
	w := doctor.NewWatch(map[string]doctor.Patient{"default": {Address: s.Addr(), Backend: open(t, s.Addr())}}, "test", patience)
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "no answer yet") {
		t.Errorf("before the first look: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })

	until(t, func() bool { return w.Ready() == nil })
	s.Kill()
	down := time.Now()
	until(t, func() bool { return w.Ready() != nil })
	if took := time.Since(down); took < patience/2 {
		t.Errorf("not ready after %s already", took)
	}
	if err := w.Ready(); err == nil || !strings.Contains(err.Error(), string(lock.ReasonUnreachable)) {
		t.Errorf("got %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return w.Ready() == nil })
	if all := w.Findings(); len(all) != 1 || !all[0].OK() {
		t.Errorf("findings %v", all)
	}
}

// until polls in real time, as a real server has no clock to drive.
func until(t *testing.T, cond func() bool) {
	t.Helper()
	end, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-end:
			t.Fatal("did not happen")
		case <-tick.C:
		}
	}
}
