// Package identity notices that two clusters use one cluster identity, as after a clone of etcd.
// Each would take the other's locks for its own.
//
// The decider writes its name into every store, under the cluster's identity, and looks a few
// seconds apart whether it still stands there:
//
//	what stands there              at the begin of a term   later in the term
//	our name                       fine                     fine
//	nothing                        we write ours            we write ours (the store lost its data)
//	a decider of our own Lease     we write ours            conflict
//	anybody else                   conflict                 conflict
//
// In a conflict the decider writes its own name again at each look, so that the other one notices
// too, and both stop acting. It is resolved once our name has stood for several looks in a row.
//
// A name that is not ours counts only if our Lease was confirmed by a write sent after the name was
// read: a replica that was paused and lost its Lease must not take its successor for a stranger.
//
// # Limits
//
// A cluster that has the same identity and another store, or another key prefix, is not noticed;
// it shares no locks either. Until the first look of a term has been answered there is no verdict.
package identity
