// Package keeper keeps many grants alive over one lock.Backend, and gets and gives them back on
// order. It knows neither what the backend is nor what the locks are for.
//
// # What it promises
//
//   - Orders and questions return at once; none of them waits for the store. Run does all the work,
//     in a number of goroutines that does not depend on the number of locks.
//   - A grant is renewed on schedule until it is lost, given back or forgotten, whatever else the
//     keeper is busy with. Renewals go out in batches, the most endangered grant first; a batch that
//     stalls holds up no other one, nor do acquires and releases.
//   - An answer that is missing is not a loss. Renewals are repeated soon, also after the grant has
//     expired here, since the store may still have it. Only the store's word, or a panic in the
//     keeping of that lock, makes an entry PhaseLost.
//   - An answer that comes after its entry was given back, forgotten or replaced changes nothing.
//   - At most one of Acquire, Abandon and Release runs per key and owner.
//   - Every change worth a look is told by Events, however slow the reader is.
//   - When Run ends, everything held is renewed once more and nothing is released.
//
// # What it does not promise
//
//   - That a grant which is PhaseHeld is still valid: look at Grant.ValidUntil.
//   - That a grant which had expired and was revived by a late renewal was never doubted: what the
//     holder did meanwhile is the caller's business.
//   - That a ttl which is shortened and, before that was answered, lengthened again is never cut
//     short in the store: the unanswered request may still arrive.
//
// # Life of an entry
//
//	order          from                        leads to
//	Acquire        (none)                      Waiting -> Held | Lost (only with Request.Since)
//	Adopt          (none)                      Held -> Lost
//	Stamp          Held (a tick)               Held -> Lost
//	Release        Waiting, Held, Lost         Releasing -> Released | Held (a tick that was started)
//	Abandon[For]   Waiting, Held, Lost, (none) Abandoning -> Abandoned
//	Forget         any                         (none)
//
// An order that does not fit the phase is ignored: repeating one is harmless, and a final entry
// stays as it is until it is forgotten.
package keeper
