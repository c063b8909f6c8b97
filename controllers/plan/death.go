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
	// HeardAt is when this process last saw a new heartbeat of the node's kubelet. Ready alone says
	// little: it stays for the better part of a minute after the last one.
	HeardAt time.Time
	// HeardFirst is the first such time after the candidate vanished.
	HeardFirst time.Time
	// Rebooted is true if its bootID is not the one the holder started under.
	Rebooted bool
}

// heartbeatLook is how soon to look again for a heartbeat; a kubelet sends one every ten seconds.
const heartbeatLook = time.Second

// Death tells whether a candidate has provably stopped.
type Death struct {
	Confirmed bool
	// Presumed is true where a node or an operator vouches for the end, not the candidate itself.
	Presumed bool
	// Why is a short phrase for people.
	Why string
	// After is when the answer may change by the passing of time alone; zero if it will not.
	After time.Time
}

// Dead judges a body. A deletion that was asked for, a missing object or a node that does not
// answer prove nothing by themselves. Nor does the end of a node, while the object stands as if
// nothing had happened: a kubelet that comes back starts such a pod again.
func Dead(now time.Time, b Body, fenceGrace time.Duration, confirmed bool) Death {
	switch {
	case confirmed:
		return Death{Confirmed: true, Presumed: true, Why: "an operator confirmed it"}
	case !b.leaving():
		return Death{Why: "it has not stopped"}
	case b.Node.Gone:
		return Death{Confirmed: true, Presumed: true, Why: "its node is gone"}
	case b.Node.OutOfService:
		return Death{Confirmed: true, Presumed: true, Why: "its node is out of service"}
	case b.Node.Rebooted && b.endedBefore(b.Node.ReadySince):
		return Death{Confirmed: true, Presumed: true, Why: "its node has rebooted"}
	case !b.Exists && b.Final && !b.Bound:
		return Death{Confirmed: true, Why: "it was never bound to a node"}
	case (b.Deleting || b.Terminal) && b.Stopped && !b.Collected:
		return Death{Confirmed: true, Why: "every container has terminated"}
	case b.Exists:
		return Death{Why: "it has not stopped"}
	}
	return vanished(now, b, fenceGrace)
}

// leaving reports whether no kubelet will start the body again.
func (b Body) leaving() bool { return b.Deleting || b.Terminal || !b.Exists }

// endedBefore reports whether the body was done with before its node came back at t, so that the
// reboot was the end of it. Otherwise the kubelet may have started it once more.
func (b Body) endedBefore(t time.Time) bool {
	switch {
	case t.IsZero():
		return false
	case b.Terminal:
		return true
	case !b.Exists:
		return !b.VanishedAt.IsZero() && !b.VanishedAt.After(t)
	}
	return !b.Deadline.After(t)
}

// vanished judges an object that disappeared without having shown its end: by force, or while
// nobody looked. A kubelet that is well stops such a pod within the pod's own grace, counted from
// when it can know: a node that was away in between starts the count over.
func vanished(now time.Time, b Body, fenceGrace time.Duration) Death {
	if b.VanishedAt.IsZero() || !b.Node.Ready {
		return Death{Why: "it vanished and its node is not ready"}
	}
	if b.Node.HeardFirst.IsZero() {
		return Death{Why: "it vanished, and its kubelet has not been heard of since", After: now.Add(heartbeatLook)}
	}
	after := later(later(b.VanishedAt, b.Node.ReadySince), b.Node.HeardFirst).Add(b.Grace + fenceGrace)
	if now.Before(after) {
		return Death{Why: "it vanished; its grace is not over", After: after}
	}
	if b.Node.HeardAt.Before(after) {
		return Death{Why: "it vanished, and its kubelet has not been heard of since its grace is over", After: now.Add(heartbeatLook)}
	}
	return Death{Confirmed: true, Why: "it vanished and its grace is over"}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
