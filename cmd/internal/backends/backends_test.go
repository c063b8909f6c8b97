package backends_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/cmd/internal/backends"
	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/test/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, b settings.Backend) lock.Backend {
	t.Helper()
	b.Timeout, b.MaxTTL = time.Second, time.Hour
	all, err := backends.Open(settings.Settings{KeyPrefix: "conch:", Backends: map[string]settings.Backend{"default": b}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backends.Close(all) })
	return all["default"]
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	// Renamed into place, as the mount of a Secret does: nobody reads half a file.
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, b lock.Backend, name string) (lock.Acquired, error) {
	t.Helper()
	return b.Acquire(t.Context(), lock.Request{Key: lock.Key{Name: name}, Owner: lock.NewOwner("test", name), TTL: time.Minute})
}

func TestAChangedPasswordIsTakenUpAndNoLockIsLost(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t, "--requirepass", "old")
	path := filepath.Join(t.TempDir(), "password")
	write(t, path, []byte("old\n"))
	b := open(t, settings.Backend{Addresses: []string{s.Addr()}, PasswordFile: path})
	got, err := acquire(t, b, "one")
	if err != nil {
		t.Fatal(err)
	}
	admin := s.Client(t, "default", "old")
	if err := admin.ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	if r := b.Renew(t.Context(), []lock.Extension{{Grant: got.Grant, TTL: time.Minute}}); lock.ReasonOf(r[0].Err) != lock.ReasonWrongPass {
		t.Errorf("with the old password: %v", r[0].Err)
	}
	write(t, path, []byte("new"))
	if r := b.Renew(t.Context(), []lock.Extension{{Grant: got.Grant, TTL: time.Minute}}); r[0].Err != nil {
		t.Errorf("with the new password: %v", r[0].Err)
	}
}

func TestATTLAboveTheLimitIsRefusedAndWhatIsHeldIsRenewedWithinIt(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	b := open(t, settings.Backend{Addresses: []string{s.Addr()}})
	_, err := b.Acquire(t.Context(), lock.Request{Key: lock.Key{Name: "long"}, Owner: "test/1", TTL: 2 * time.Hour})
	if !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	got, err := acquire(t, b, "short")
	if err != nil {
		t.Fatal(err)
	}
	r := b.Renew(t.Context(), []lock.Extension{{Grant: got.Grant, TTL: 2 * time.Hour}})
	if r[0].Err != nil || r[0].Grant.TTL != time.Hour {
		t.Errorf("renewed to %s, %v", r[0].Grant.TTL, r[0].Err)
	}
}

func TestOptionsThatABackendRefusesAreNamedWithIt(t *testing.T) {
	t.Parallel()
	_, err := backends.Open(settings.Settings{KeyPrefix: "{}", Backends: map[string]settings.Backend{"default": {Addresses: []string{"a:1"}}}})
	if err == nil {
		t.Fatal("no error")
	}
}
