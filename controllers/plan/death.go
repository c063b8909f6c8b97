package plan

import "time"

// Body is what is known about whether a candidate's processes run.
type Body struct {
	// Exists is false once the API server itself said that the object is gone.
	Exists bool
	// Final is true for a vanished object whose last state is known, as the watch delivered it.
	Final bool
	// Known is true where any state of the object is known at all.
	Known bool
	Bound bool
	// Deleting and Terminal: deletionTimestamp set, phase Succeeded or Failed.
	Deleting bool
	Terminal bool
	// Deadline is the deletionTimestamp: when the kubelet kills at the latest.
	Deadline time.Time
	// Stopped is true if at least one container status exists and every one is terminated.
	Stopped bool
	// Collected is true where the pod garbage collector, not a kubelet, wrote the end.
	Collected bool
	Grace     time.Duration
	// VanishedAt is when this process first found the object gone.
	VanishedAt time.Time
	Node       Node
}

// Node is the machine that a candidate was bound to.
type Node struct {
	// Gone is true if the node is known by name and its object does not exist.
	Gone         bool
	OutOfService bool
	Ready        bool
	// ReadySince is when it last became ready.
	ReadySince time.Time
	// Rebooted is true if its bootID is not the one the holder started under.
	Rebooted bool
}

// Death tells whether a candidate has provably stopped.
type Death struct {
	Confirmed bool
	// Why is a short phrase for people.
	Why string
	// After is when the answer may change by the passing of time alone; zero if it will not.
	After time.Time
}

// Dead judges a body. A deletion that was asked for, a missing object or a node that does not
// answer prove nothing by themselves.
func Dead(now time.Time, b Body, fenceGrace time.Duration, confirmed bool) Death {
	switch {
	case confirmed:
		return Death{Confirmed: true, Why: "an operator confirmed it"}
	case b.Node.Gone:
		return Death{Confirmed: true, Why: "its node is gone"}
	case b.Node.OutOfService:
		return Death{Confirmed: true, Why: "its node is out of service"}
	case b.Node.Rebooted:
		return Death{Confirmed: true, Why: "its node has rebooted"}
	case !b.Exists && b.Final && !b.Bound:
		return Death{Confirmed: true, Why: "it was never bound to a node"}
	case (b.Deleting || b.Terminal) && b.Stopped && !b.Collected:
		return Death{Confirmed: true, Why: "every container has terminated"}
	case b.Exists:
		return Death{Why: "it has not stopped"}
	}
	return vanished(now, b, fenceGrace)
}

// vanished judges an object that disappeared without having shown its end: by force, or while
// nobody looked. A kubelet that is well stops such a pod within the pod's own grace.
func vanished(now time.Time, b Body, fenceGrace time.Duration) Death {
	if !b.Node.Ready || b.Node.ReadySince.After(b.VanishedAt) {
		return Death{Why: "it vanished and its node is not ready"}
	}
	after := b.VanishedAt.Add(b.Grace + fenceGrace)
	if now.Before(after) {
		return Death{Why: "it vanished; its grace is not over", After: after}
	}
	return Death{Confirmed: true, Why: "it vanished and its grace is over"}
}
