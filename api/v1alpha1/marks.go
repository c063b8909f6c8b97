package v1alpha1

// Marks by which a user says what is to be a singleton. They stand on a workload, on its pod template
// or on a bare pod; AnnotationSingleton and LabelSingleton share a name, because policies copy the
// first into the second.
const (
	// AnnotationSingleton asks for a mode: leader, exclusive or active-passive.
	AnnotationSingleton = "conch.dev/singleton"
	// LabelSingleton carries the mode on pod templates and pods, where conch selects by it.
	LabelSingleton = "conch.dev/singleton"
	// AnnotationLock names the DistributedLock, in the same namespace.
	AnnotationLock = "conch.dev/lock"
	// GateLock is the scheduling gate that keeps an exclusive pod off every node until it holds.
	GateLock = "conch.dev/lock"
)

// Values of AnnotationSingleton and LabelSingleton.
const (
	// SingletonLeader runs every pod and labels one of them.
	SingletonLeader = "leader"
	// SingletonExclusive runs the holder only.
	SingletonExclusive = "exclusive"
	// SingletonActivePassive runs all replicas in the cluster that holds, none elsewhere.
	SingletonActivePassive = "active-passive"
)

// Marks that conch writes, and nobody else may.
const (
	// LabelRole is on the pod that leads, with the value RoleLeader. Services select by it.
	LabelRole = "conch.dev/role"
	// RoleLeader is the only value of LabelRole.
	RoleLeader = "leader"
	// AnnotationFencingToken is the holder's fencing token, a decimal number of up to 53 bits.
	AnnotationFencingToken = "conch.dev/fencing-token"
	// AnnotationHolderIdentity is the owner under which the holder stands in the store.
	AnnotationHolderIdentity = "conch.dev/holder-identity"
	// AnnotationKey is the lock's key as it stands in the store, without prefix.
	AnnotationKey = "conch.dev/key"
	// AnnotationEnded is the fencing token of the newest tenure that was ended while the pod was still
	// gated or labelled. Writing it makes a start that was decided earlier conflict.
	AnnotationEnded = "conch.dev/ended"
)

// Annotations by which an operator steps in. Their values are checked against the present state, so
// that an order left behind from an earlier tenure does nothing.
const (
	// AnnotationRelease on a DistributedLock hands it over if the value is its present fencing token.
	AnnotationRelease = "conch.dev/release"
	// AnnotationConfirmDead on a DistributedLock states that its unreachable holder is dead, if the value
	// is its present fencing token. It needs VerbConfirmDead.
	AnnotationConfirmDead = "conch.dev/confirm-dead"
	// AnnotationOverride gives the reason for a write that conch's policies refuse otherwise. It needs
	// VerbOverride.
	AnnotationOverride = "conch.dev/override"
)

// Verbs on distributedlocks that RBAC grants to operators.
const (
	// VerbConfirmDead allows to write AnnotationConfirmDead.
	VerbConfirmDead = "confirm-dead"
	// VerbOverride allows to write AnnotationOverride.
	VerbOverride = "override"
)
