package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ErrStale is returned where somebody with a higher fencing token has written before. Stop working: another holds the lock.
var ErrStale = errors.New("a newer holder has written here")

// TokenFromEnv reads the fencing token of an exclusive pod, or of a Job, from the variable that its manifest fills by
// fieldRef: metadata.annotations['conch.dev/fencing-token'].
func TokenFromEnv(name string) (int64, error) {
	token, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil || token <= 0 {
		return 0, fmt.Errorf("%s is %q, want the fencing token: set it by fieldRef metadata.annotations['conch.dev/fencing-token']", name, os.Getenv(name))
	}
	return token, nil
}

// FencedUpdate sets an account's balance unless a later holder has done so. The comparison is part of the statement that writes:
// a check before it would leave room for a pause in between.
func FencedUpdate(ctx context.Context, db *sql.DB, account string, balance, token int64) error {
	res, err := db.ExecContext(ctx,
		`UPDATE accounts SET balance = ?, fence = ? WHERE id = ? AND fence <= ?`, balance, token, account, token)
	return changed(res, err, ErrStale)
}

// changed turns "no row changed" into refused.
func changed(res sql.Result, err, refused error) error {
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	switch n, err := res.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("count the rows written: %w", err)
	case n == 0:
		return refused
	}
	return nil
}
