// Package lockprom turns what a lock.Observer hears into Prometheus metrics.
//
//	metric                                 labels               meaning
//	conch_store_request_duration_seconds   op, outcome          how long calls to the store took
//	conch_store_requests_total             op, outcome, reason  calls to the store
//	conch_renewal_lateness_seconds         -                    how long after its due time a renewal was sent
//	conch_keeper_panics_total              -                    panics in the keeping of a lock that were isolated
//	conch_locks_lost_total                 cause                grants that the store no longer had
//	conch_locks_held                       -                    grants that are kept now
//
// Every label has few values, whatever the locks are called. Op is acquire, renew, release, abandon,
// inspect or other. Outcome is ok, held, lost, unknown or refused, and reason a lock.Reason where
// the outcome is unknown, else empty. Cause is gone, taken, foreign or other.
//
// A renew is one batch: it is unknown if any of its members had no answer, and ok otherwise. Losses
// among them are counted one by one.
package lockprom
