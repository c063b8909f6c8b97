package v1alpha1

// Condition types of a DistributedLock. Each is always set.
const (
	// ConditionReady is True while the lock is managed as its spec asks, whoever holds it.
	ConditionReady = "Ready"
	// ConditionHeld is True only while a candidate of this cluster holds the lock.
	ConditionHeld = "Held"
	// ConditionBackendReady is True while the lock's backend answers.
	ConditionBackendReady = "BackendReady"
	// ConditionFenced is False while a former holder is not confirmed to have stopped.
	ConditionFenced = "Fenced"
	// ConditionClusterIdentityConflict is True while another cluster uses this cluster's identity.
	ConditionClusterIdentityConflict = "ClusterIdentityConflict"
)

// Reasons of conditions, beside the reasons of plan and those of a backend's missing answers.
const (
	// ReasonOK: nothing is wrong.
	ReasonOK = "OK"
	// ReasonAcquired: a candidate of this cluster holds the lock.
	ReasonAcquired = "Acquired"
	// ReasonSettling: acquired, but the holder before may still run.
	ReasonSettling = "Settling"
	// ReasonHeldHere: waiting for a holder of this cluster.
	ReasonHeldHere = "HeldHere"
	// ReasonKeyNotAllowed: the key is malformed, or not allowed in this namespace.
	ReasonKeyNotAllowed = "KeyNotAllowed"
	// ReasonNamespaceNotAllowed: conch is not configured for this namespace.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonUnknownBackend: the configuration has no backend of that name.
	ReasonUnknownBackend = "UnknownBackend"
	// ReasonInvalidTiming: the durations do not fit together.
	ReasonInvalidTiming = "InvalidTiming"
	// ReasonTTLTooShort: works, but leaves little time for slow nodes and networks.
	ReasonTTLTooShort = "TTLTooShort"
	// ReasonAnswering: the backend answers.
	ReasonAnswering = "Answering"
	// ReasonInProgress: a former holder is being stopped.
	ReasonInProgress = "InProgress"
	// ReasonConfirmed: a former holder was confirmed to have stopped.
	ReasonConfirmed = "Confirmed"
	// ReasonUnconfirmed: the lock was given back without confirmation, as the spec asks.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonHolderUnreachable: the holder's end cannot be confirmed.
	ReasonHolderUnreachable = "HolderUnreachable"
	// ReasonNotNeeded: nobody has to be stopped.
	ReasonNotNeeded = "NotNeeded"
	// ReasonClusterIdentityConflict: two clusters use one identity.
	ReasonClusterIdentityConflict = "ClusterIdentityConflict"
	// ReasonUnique: no other cluster uses this identity.
	ReasonUnique = "Unique"
)
