// Package ledger holds the oracles: what the holders of a lock themselves say about when they worked, apart from anything that the
// system under test believes. Every safety test ends with Verdict.
//
//	oracle           what it judges                                   what proves it
//	Ledger           exclusive: no two tenures of a key overlap,      the workers' own start and stop, and the runtime's note of
//	                 fencing tokens rise                              their death, on one monotonic clock
//	Witness          leader: one writer per fencing token, and no     a server that refuses a lower token than it has seen
//	                 lower one is accepted
//	leaders.Watch    leader: at no resourceVersion two pods of a      one watch of the API server
//	                 lock with the label
//
// Why an interval of the ledger covers the real one: a worker writes its start before it does anything, and stops doing anything before
// it writes its stop. One that is killed writes nothing, so whoever runs it writes its exit, after its death and before anybody else can
// know of it (nodeagent.Processes.OnExit). One without an end still runs. The clock is CLOCK_MONOTONIC, which all processes of a host
// share; the file is appended to in single writes, which the kernel keeps whole and in order.
package ledger
