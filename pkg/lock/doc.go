// Package lock is the contract of conch's locks: leases in a store such as Redis, each with an
// owner, a time to live and a fencing token.
//
// # What a holder may assume
//
//   - While a Grant has not expired by its own ValidUntil, no other owner was granted the key by
//     the same store, as long as that store kept its data and its clock was not set back or ahead.
//   - Every acquisition of a key carries a higher fencing token than the ones before it, also over
//     a failover to a lagging replica, a restart without data and a flush, unless the store's clock
//     is set back further than the time since an acquisition that was lost and never seen.
//
// # What a holder may not assume
//
//   - That it is alone. A process that was paused, or a store that lost its data, ends in two
//     processes that both believe they hold. Only the resource that is written to can tell: it must
//     refuse a fencing token lower than the highest it has seen.
//
//   - That an error means "not acquired". Three outcomes never mix:
//
//     ErrHeld     somebody else has it              wait
//     ErrLost     it was ours and is no more        stop the work
//     ErrUnknown  no answer, or none that counts    nothing new starts; what runs goes on until
//     its own grant ends
//
// About a tick, a scheduled run of a key, two more are told: ErrTooOld (it may not run any more) and
// ErrStarted (it cannot be given back). Neither starts or stops anything.
//
// # Time
//
// Validity counts from before the request was sent, on the monotonic clock, less a drift of 1 %
// of the ttl plus 2 ms. Times of the store's clock never leave a backend: what crosses the
// contract are durations measured by the store itself.
package lock
