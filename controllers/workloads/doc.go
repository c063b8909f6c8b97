// Package workloads gives marked workloads the lock that they want, and their owners advice.
//
// A workload that names no lock gets one of its own, `<kind>-<name>`, which goes with it. One that exists
// already is used as it is. A lock that is named is never made here: it may be a slip of the pen.
//
// What policies cannot see, because it stands in another object or in conch's configuration, is told in
// Events on the workload: once for as long as it is true.
//
// Only the replica that decides does anything here, and none of it starts or stops a pod.
package workloads
