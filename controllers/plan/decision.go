package plan

import "time"

// ActionKind names the one effect of a pass.
type ActionKind string

const (
	NoAction ActionKind = ""
	// Contend: begin to ask for the key on behalf of the target.
	Contend ActionKind = "Contend"
	// CallOff: stop asking; whatever the asking left in the store is removed.
	CallOff ActionKind = "CallOff"
	// Sweep: remove what an attempt of this cluster whose candidate is no more left in the store.
	Sweep ActionKind = "Sweep"
	// Continue: ask again for a key that vanished under its holder, if nobody came between.
	Continue ActionKind = "Continue"
	// Start: lift the target's gate or set its label, and write its record in the same patch.
	Start ActionKind = "Start"
	// Record: write the present fencing token on the target.
	Record ActionKind = "Record"
	// Spoil: mark on the target that its tenure has ended. On a gated one, a start decided earlier by
	// anyone then conflicts; one that is only presumed dead is never again taken for a holder.
	Spoil ActionKind = "Spoil"
	// Stop: delete the target with Grace, so that the kubelet ends it.
	Stop ActionKind = "Stop"
	// Suspend: suspend the target, a Job, so that its controller makes no more pods and counts none as failed.
	Suspend ActionKind = "Suspend"
	// Reset: take out of a Job's status what is from before it was resumed or suspended last, so that what
	// its controller writes next can be told from it.
	Reset ActionKind = "Reset"
	// Retire: take the revision of the target, a stray, out of service.
	Retire ActionKind = "Retire"
	// Unlabel: take the leader's label off the target.
	Unlabel ActionKind = "Unlabel"
	// Release: give the key back.
	Release ActionKind = "Release"
	// Forget: drop an entry that has come to its end from the keeper.
	Forget ActionKind = "Forget"
)

// Action is an effect and what it is aimed at.
type Action struct {
	Kind   ActionKind
	Target Candidate
	// Member is the pod of a composite target that the effect is on; zero for the target itself.
	Member Member
	// Grace is how long the target gets to stop.
	Grace time.Duration
	// Unclean is true for a release without confirmed death.
	Unclean bool
}

// Reason explains a decision in one PascalCase word, fit for a condition or an Event.
type Reason string

const (
	NoCandidate      Reason = "NoCandidate"
	NotDeciding      Reason = "NotDeciding"
	Draining         Reason = "Draining"
	IdentityConflict Reason = "ClusterIdentityConflict"
	Blocked          Reason = "Blocked"
	Contending       Reason = "Contending"
	HeldElsewhere    Reason = "HeldElsewhere"
	HeldBeside       Reason = "HeldBeside"
	HeldByForeign    Reason = "HeldByForeign"
	OthersActive     Reason = "OthersActive"
	CannotTell       Reason = "CannotTell"

	Acquired     Reason = "Acquired"
	Adopted      Reason = "Adopted"
	Settled      Reason = "Settled"
	Started      Reason = "Started"
	Running      Reason = "Running"
	TenureBroken Reason = "TenureBroken"

	LockLost         Reason = "LockLost"
	BackendLost      Reason = "BackendLost"
	LockDeleted      Reason = "LockDeleted"
	ReleaseRequested Reason = "ReleaseRequested"
	MaxHoldReached   Reason = "MaxHoldReached"
	StartDeadline    Reason = "StartDeadlineExceeded"
	HandOver         Reason = "HandOver"
	LockChanged      Reason = "LockChanged"
	LeaderNotReady   Reason = "LeaderNotReady"
	HolderGone       Reason = "HolderGone"
	Finished         Reason = "HolderFinished"
	HolderUnmarked   Reason = "HolderUnmarked"
	Unreachable      Reason = "HolderUnreachable"
	GateBypassed     Reason = "GateBypassed"
	Released         Reason = "Released"
)

// Decision is what to do and what to write after it.
type Decision struct {
	Action Action
	// Status replaces the snapshot's, once the action has succeeded.
	Status Status
	// Reason and Message explain where the lock stands.
	Reason  Reason
	Message string
	// Revisit is when to decide again though nothing else happens; zero for never.
	Revisit time.Duration
}

// wait is a decision to change nothing for now.
func (s Snapshot) wait(r Reason, msg string) Decision {
	return Decision{Status: s.Status, Reason: r, Message: msg}
}

// do is a decision for one action, with the status as it is.
func (s Snapshot) do(a Action, r Reason, msg string) Decision {
	return Decision{Action: a, Status: s.Status, Reason: r, Message: msg}
}

// write is a decision to write a status and do nothing else.
func (s Snapshot) write(st Status, r Reason, msg string) Decision {
	return Decision{Status: st, Reason: r, Message: msg}
}

// until sets the time of the next look, if at lies in the future and before any other. A time that
// has passed has been judged already: looking again would find the same, over and over.
func (d Decision) until(now, at time.Time) Decision {
	if !at.After(now) {
		return d
	}
	if in := max(at.Sub(now), time.Millisecond); d.Revisit == 0 || in < d.Revisit {
		d.Revisit = in
	}
	return d
}

// atOnce asks for another pass although neither a watch nor the keeper will tell of this one.
func (d Decision) atOnce() Decision {
	d.Revisit = time.Millisecond
	return d
}
