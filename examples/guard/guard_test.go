package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/conch-dev/conch/examples/guard"
)

const schema = `
CREATE TABLE accounts (id TEXT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0);
CREATE TABLE operations (id TEXT PRIMARY KEY);
CREATE TABLE runs (job TEXT, tick BIGINT, PRIMARY KEY (job, tick));
INSERT INTO accounts (id, balance) VALUES ('till', 100);`

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return db
}

func balance(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRowContext(t.Context(), `SELECT balance FROM accounts WHERE id = 'till'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAHolderThatHasASuccessorWritesNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	const old, successor = 1_796_090_412_345, 1_796_090_412_346
	for _, w := range []struct {
		token, balance int64
		want           error
	}{
		{old, 90, nil}, {old, 80, nil}, {successor, 70, nil}, {old, 10, guard.ErrStale}, {successor, 60, nil},
	} {
		if err := guard.FencedUpdate(t.Context(), db, "till", w.balance, w.token); !errors.Is(err, w.want) {
			t.Errorf("write %d with token %d: got %v, want %v", w.balance, w.token, err, w.want)
		}
	}
	if got := balance(t, db); got != 60 {
		t.Errorf("balance is %d, want 60", got)
	}
}

func TestAWriteBasedOnARowThatChangedIsRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := guard.VersionedUpdate(t.Context(), db, "till", 90, 0); err != nil {
		t.Fatal(err)
	}
	if err := guard.VersionedUpdate(t.Context(), db, "till", 10, 0); !errors.Is(err, guard.ErrChanged) {
		t.Errorf("got %v, want %v", err, guard.ErrChanged)
	}
	if got := balance(t, db); got != 90 {
		t.Errorf("balance is %d, want 90", got)
	}
}

func TestManyHoldersAtOnceDoAnOperationOnce(t *testing.T) {
	t.Parallel()
	tick := time.Date(2026, 12, 3, 4, 5, 0, 0, time.UTC)
	for name, do := range map[string]func(context.Context, *sql.DB) error{
		"by an idempotency key": func(ctx context.Context, db *sql.DB) error { return guard.OncePerKey(ctx, db, "payout-17", "till", -5) },
		"by a scheduled run": func(ctx context.Context, db *sql.DB) error {
			return guard.OncePerTick(ctx, db, "payout", tick, "till", -5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			var done, before atomic.Int64
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					switch err := do(t.Context(), db); {
					case err == nil:
						done.Add(1)
					case errors.Is(err, guard.ErrDone):
						before.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if done.Load() != 1 || before.Load() != 19 || balance(t, db) != 95 {
				t.Errorf("done %d times, refused %d times, balance %d; want 1, 19, 95", done.Load(), before.Load(), balance(t, db))
			}
		})
	}
}

func TestTwoRunsOfAJobAreTwo(t *testing.T) {
	t.Parallel()
	db := open(t)
	first := time.Date(2026, 12, 3, 4, 5, 0, 0, time.UTC)
	for _, tick := range []time.Time{first, first.Add(time.Minute), first.In(time.FixedZone("elsewhere", 3600))} {
		if err := guard.OncePerTick(t.Context(), db, "payout", tick, "till", -5); err != nil && !errors.Is(err, guard.ErrDone) {
			t.Fatal(err)
		}
	}
	if got := balance(t, db); got != 90 {
		t.Errorf("balance is %d, want 90", got)
	}
}

func TestAnOperationThatFailsLeavesNoClaim(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := guard.OncePerKey(t.Context(), db, "k", "nobody", 1); err == nil || errors.Is(err, guard.ErrDone) {
		t.Fatalf("got %v, want an error about the account", err)
	}
	if err := guard.OncePerKey(t.Context(), db, "k", "till", 1); err != nil {
		t.Errorf("the second try: %v", err)
	}
}

func TestAMissingFencingTokenIsNamed(t *testing.T) {
	t.Setenv("FENCING_TOKEN", "")
	if _, err := guard.TokenFromEnv("FENCING_TOKEN"); err == nil {
		t.Error("no error for a variable that is empty")
	}
	t.Setenv("FENCING_TOKEN", "1796090412345")
	if got, err := guard.TokenFromEnv("FENCING_TOKEN"); err != nil || got != 1796090412345 {
		t.Errorf("got %d, %v", got, err)
	}
}
