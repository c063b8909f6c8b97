// Package plan decides what happens next to one lock. It is pure: values in, values out, the time
// as an argument; so every rule of conch can be read and tested without a cluster or a Redis.
//
// A decision holds at most one effect on the outside, and the status to write after it. An effect
// is only chosen when the status of an earlier pass, as it stands in the snapshot, allows it:
//
//	start   acquire -> status names the holder -> lift the gate or set the label -> status
//	stop    status says Fencing -> delete or unlabel -> confirmed -> status says Releasing ->
//	        release -> status
//
// So whoever decides next, after a crash at any point, finds either the status or the store ahead
// of the effects, never behind.
package plan
