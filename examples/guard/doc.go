// Package guard shows the layers that a singleton's writes should have below the lock: what the resource itself refuses, so that two
// holders at once, or one that was paused for too long, do no harm. The statements are plain SQL that PostgreSQL, MySQL and SQLite
// understand alike; the fencing token wants a BIGINT.
//
//	layer             refuses                                    needs the lock?
//	FencedUpdate      writes of a holder that has a successor    its fencing token
//	VersionedUpdate   writes based on a row that has changed     no
//	OncePerKey        the same operation a second time           no
//	OncePerTick       the same scheduled run a second time       no
package guard
