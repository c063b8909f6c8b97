package guard

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

var (
	// ErrChanged is returned where the row is not the one that was read. Read it again and decide anew.
	ErrChanged = errors.New("the row has changed since it was read")
	// ErrDone is returned where the operation was done before. It is not a failure: there is nothing left to do.
	ErrDone = errors.New("this was done before")
)

// VersionedUpdate sets a balance if the row still is at the version that it was read at.
func VersionedUpdate(ctx context.Context, db *sql.DB, account string, balance, version int64) error {
	res, err := db.ExecContext(ctx,
		`UPDATE accounts SET balance = ?, version = version + 1 WHERE id = ? AND version = ?`, balance, account, version)
	return changed(res, err, ErrChanged)
}

// OncePerKey adds to a balance once per idempotency key, however often and by however many it is called. The key and the effect are
// one transaction: a crash leaves both or none.
func OncePerKey(ctx context.Context, db *sql.DB, key, account string, amount int64) error {
	return once(ctx, db, `INSERT INTO operations (id) VALUES (?) ON CONFLICT DO NOTHING`, []any{key}, account, amount)
}

// OncePerTick adds to a balance once per scheduled run of a job. tick is the scheduled time, which Kubernetes writes on a CronJob's
// Jobs as the annotation batch.kubernetes.io/cronjob-scheduled-timestamp; the unique constraint on (job, tick) does the rest.
func OncePerTick(ctx context.Context, db *sql.DB, job string, tick time.Time, account string, amount int64) error {
	minute := tick.Unix() / 60
	return once(ctx, db, `INSERT INTO runs (job, tick) VALUES (?, ?) ON CONFLICT DO NOTHING`, []any{job, minute}, account, amount)
}

func once(ctx context.Context, db *sql.DB, claim string, args []any, account string, amount int64) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	res, err := tx.ExecContext(ctx, claim, args...)
	if err := changed(res, err, ErrDone); err != nil {
		return err
	}
	res, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = balance + ? WHERE id = ?`, amount, account)
	if err := changed(res, err, errors.New("there is no such account")); err != nil {
		return err
	}
	return tx.Commit()
}
