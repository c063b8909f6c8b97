// Package election decides which replica of conch decides: the one that holds conch's own Lease.
//
// It differs from the election of client-go in what a loss means. Every replica renews locks, so a
// replica that loses the Lease, or cannot reach the API server, must live on; only Deciding turns
// false, and whoever acts asks it right before each write.
//
//	who        does                                         when
//	holder     writes the Lease                             every RetryPeriod
//	holder     may decide                                   until RenewDeadline after it sent the newest
//	                                                        write that succeeded
//	contender  reads the Lease                              every half RetryPeriod
//	contender  may take it from a holder                    once the record has not changed for as long as
//	                                                        the record itself says, at least RenewDeadline
//	contender  may take one that was given back             at once
//
// # Promises
//
// At most one replica decides at a time, as long as the clocks of two machines do not run at rates
// that differ by more than LeaseDuration to RenewDeadline (3 to 2 by default). All times are
// measured on the monotonic clock of one process; those in the record are for people. That clock
// runs on while a process is stopped, so a resumed one is not fooled. It stands still while a whole
// machine sleeps: a late write must be refused by its resourceVersion, not by Deciding.
//
// # What breaks it
//
// Two processes under one Identity, which is why it has to be unique for each process. Editing the
// Lease by hand moves the decision at once, without the wait; deleting it does not.
package election
