package plan

import "time"

// Mode is how a workload wants to be a singleton.
type Mode string

const (
	// Exclusive pods wait behind a scheduling gate; only the holder is bound to a node.
	Exclusive Mode = "exclusive"
	// Leader pods all run; the holder carries a label.
	Leader Mode = "leader"
	// ActivePassive workloads run all their pods in the cluster that holds, and none elsewhere.
	ActivePassive Mode = "active-passive"
)

// State is where a lock stands in this cluster.
type State string

const (
	Idle      State = "Idle"      // nobody here wants it
	Waiting   State = "Waiting"   // somebody here wants it
	Settling  State = "Settling"  // ours, but the holder before may still run: nothing starts yet
	Held      State = "Held"      // ours
	Fencing   State = "Fencing"   // ours or lost, and the holder is being stopped
	Releasing State = "Releasing" // the holder has stopped, the key is being given back
)

// Snapshot is all that one decision is based on.
type Snapshot struct {
	Lock       Lock
	Status     Status
	Candidates []Candidate
	Kin        []Kin
	Store      Store
	Self       Self
}

// Self is what the deciding process knows about itself.
type Self struct {
	Cluster string
	// Deciding is whether this replica holds conch's own Lease.
	Deciding bool
	// Contending is false while the operator drains this cluster.
	Contending bool
	// IdentityConflict is true while another cluster uses the same identity.
	IdentityConflict bool
}

// Lock is the wish of the user, with every default filled in.
type Lock struct {
	// Gone is true once the object is deleted, or is on its way out.
	Gone bool
	// Refused says why no candidate may contend, empty if they may: the key is not allowed, the
	// backend unknown, the timings impossible.
	Refused string
	// Shared locks reach beyond this cluster.
	Shared        bool
	FenceGrace    time.Duration
	Margin        time.Duration
	RenewInterval time.Duration
	TakeoverDelay time.Duration
	MaxHold       time.Duration // zero: none
	StartDeadline time.Duration
	HoldOnLoss    bool // onBackendLoss: Hold
	Demote        bool // onDemote: Demote
	ReleaseLost   bool // onUnreachable: Release
	// RetryElsewhere lets another cluster run a scheduled run that lost its lock after it was started.
	RetryElsewhere bool
	// ReleaseAsked and DeadConfirmed are fencing tokens named by an operator; zero for none.
	ReleaseAsked  int64
	DeadConfirmed int64
}

// Holder is who has the lock: a candidate of this cluster, or what is known of another one.
type Holder struct {
	Cluster, Namespace, Kind, Name, UID string
	// Owner is the whole identity in the store, nonce included.
	Owner  string
	Node   string
	BootID string
	// Grace is the holder's own termination grace period.
	Grace time.Duration
}

// Status is the part of a lock's status that decisions read and write.
type Status struct {
	State        State
	Holder       Holder
	Token        string
	FencingToken int64
	HighestSeen  int64
	AcquiredAt   time.Time
	NotBefore    time.Time
	StartedAt    time.Time
	// Ending is why the tenure is being ended; set in Fencing and Releasing.
	Ending Reason
	// Unclean is true where the holder's end was not confirmed.
	Unclean bool
}

// Ours reports whether the status says that a candidate of cluster has the lock.
func (s Status) Ours(cluster string) bool {
	switch s.State {
	case Settling, Held, Fencing, Releasing:
		return s.Holder.Cluster == cluster
	}
	return false
}

// Candidate is a pod that wants the lock, or has it; or a Job or an active-passive workload, which work
// through pods.
type Candidate struct {
	Kind, Namespace, Name, UID string
	Mode                       Mode
	Created                    time.Time
	// Group is the workload that owns the candidate, and Revision orders its versions.
	Group    string
	Revision int64
	// Gated is true while the scheduling gate is on, or the Job suspended; Leading while the pod carries the
	// leader's label.
	Gated   bool
	Leading bool
	// Ready since ReadySince, or not ready since then.
	Ready      bool
	ReadySince time.Time
	// Record is the identity and the fencing token written on the candidate itself.
	Record      string
	RecordToken int64
	// Ended is the fencing token of the newest tenure that was ended while it was gated or labelled.
	Ended int64
	// UnlabelledSince is when this process first saw a former leader without its label.
	UnlabelledSince time.Time
	// BackOffUntil keeps a candidate behind the others after it gave the lock back.
	BackOffUntil time.Time
	// GaveUp is true if its revision had the lock and was not running in time.
	GaveUp bool
	// Stray is true for a pod of the holder's workload that runs and does not want this lock: unmarked, or Marked
	// and under another lock. Replaceable is true if its older revision can be taken out of service.
	Stray       bool
	Replaceable bool
	// NodeName and BootID say where it was bound.
	NodeName string
	BootID   string
	// RecordedToken is the record as it stands in the store.
	RecordedToken string
	// Marked is true if the candidate's template, or a bare pod itself, bears conch's mark.
	Marked bool
	// Overridden is true if an operator let the candidate past the gate (break-glass); it is adopted
	// where the key is free, instead of being stopped.
	Overridden bool
	Body       Body

	// Members are the pods of a Job or an active-passive workload; Listed is true if they come from the API
	// server itself, in this pass. Of the candidate's own Body only Exists, Deleting, Terminal, Grace and
	// VanishedAt are set then.
	Members []Member
	Listed  bool
	// Quiet is true once whoever makes the members is known to make none that would run by themselves.
	Quiet bool
	// Busy is true while a suspended Job's controller still counts pods: it cannot be resumed yet.
	Busy bool
	// Stale is true where a Job's status is from before it was resumed, or suspended, last.
	Stale bool
	// Done is true for a workload that asks for no marked pods: scaled to 0, or its mark was taken off.
	Done bool
	// TickPending is true while a scheduled run has not been claimed for this cluster: it neither contends
	// nor starts. TickWithdrawn is true where it will not run here, so that its tenure ends.
	// TickReplaced is true where a newer run of another cluster takes its place. TickUnsaid is true while the
	// store has still to be told how it ended; whoever finds the key free before that may run it again.
	TickPending   bool
	TickWithdrawn bool
	TickReplaced  bool
	TickUnsaid    bool
}

// Eligible reports whether the candidate could start if it had the lock.
func (c Candidate) Eligible(now time.Time) bool {
	if c.Body.Deleting || c.Body.Terminal || !c.Body.Exists || now.Before(c.BackOffUntil) {
		return false
	}
	switch {
	case c.Mode == Leader:
		return c.Ready
	case c.isJob():
		return c.Gated && !c.works() && !c.Busy && !c.TickPending
	case c.Mode == ActivePassive:
		_, waits := c.withheld(0)
		return waits && !c.works() && !c.Done
	}
	return c.Gated
}

// writtenOff reports whether the candidate's tenure was ended although nobody saw it stop: its node
// was given up, or an operator confirmed its death. It waits for its object to go, and for nothing
// else, so it stands in nobody's way.
func (c Candidate) writtenOff() bool {
	if c.Composite() {
		return c.works() && c.allWrittenOff()
	}
	return c.Body.leaving() && c.RecordToken != 0 && c.Ended >= c.RecordToken && !c.Gated
}

// Active reports whether the candidate is doing, or may be doing, what only a holder may do.
func (c Candidate) Active() bool {
	switch {
	case c.Mode == Leader:
		return c.Leading
	case c.Composite():
		return c.works()
	}
	return !c.Gated
}

// Phase is where the keeper's entry for this lock stands.
type Phase string

const (
	NoEntry   Phase = ""
	Asking    Phase = "Asking"    // contending
	Granted   Phase = "Granted"   // granted and kept
	Lost      Phase = "Lost"      // the store said that it is no more
	GivingUp  Phase = "GivingUp"  // being released or abandoned
	GivenBack Phase = "GivenBack" // released or abandoned
)

// Store is what is known about the lock's key, from the keeper's entry for the status's holder or,
// where there is none, for the candidate that contends.
type Store struct {
	Phase Phase
	// Owner, Token, FencingToken, ValidUntil describe the entry's grant.
	Owner        string
	Token        string
	FencingToken int64
	ValidUntil   time.Time
	GrantedAt    time.Time
	NotBefore    time.Time
	// KeptSince is when this process began to keep the entry, for grants it never renewed itself.
	KeptSince time.Time
	// Continuing is true while the entry asks for a key that vanished under its holder.
	Continuing bool
	// Unanswered is when an unbroken row of missing answers began; zero if the last one came.
	Unanswered time.Time
	// Answered is true once the store answered this process at all.
	Answered bool
	// Asker is the candidate that the entry asks for, known even after its object is gone.
	Asker Holder
	// Awaited is true while a candidate of another cluster is known to wait for the key.
	Awaited bool
	Seen    Seen
}

// Presence says who has a key.
type Presence string

const (
	Unseen  Presence = ""        // nothing is known
	Free    Presence = "Free"    // nobody
	Here    Presence = "Here"    // a candidate of this lock, by another attempt
	Beside  Presence = "Beside"  // somebody else of this cluster, alive or not yet confirmed dead
	Remains Presence = "Remains" // an attempt of this cluster whose candidate is no more
	Away    Presence = "Away"    // another cluster
	Foreign Presence = "Foreign" // no conch
)

// Seen is who was last seen to have the key, other than the entry itself.
type Seen struct {
	Presence     Presence
	Holder       Holder
	Token        string
	FencingToken int64
	Highest      int64
}
