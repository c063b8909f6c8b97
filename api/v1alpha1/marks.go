package v1alpha1

// Marks on workloads and pods, and what conch writes on them.
const (
	// LabelSingleton marks a pod: leader or exclusive.
	LabelSingleton = "conch.dev/singleton"
	// AnnotationLock names the DistributedLock that a marked pod wants.
	AnnotationLock = "conch.dev/lock"
	// GateLock is the scheduling gate that keeps an exclusive pod from starting. Only conch lifts it.
	GateLock = "conch.dev/lock"

	// LabelRole is set to RoleLeader on the leader, and on nobody else.
	LabelRole = "conch.dev/role"
	// RoleLeader is the value of LabelRole.
	RoleLeader = "leader"

	// AnnotationFencingToken is the holder's fencing token, a decimal number.
	AnnotationFencingToken = "conch.dev/fencing-token"
	// AnnotationHolderIdentity is who the holder is to the store.
	AnnotationHolderIdentity = "conch.dev/holder-identity"
	// AnnotationKey is the key under which the holder has the lock.
	AnnotationKey = "conch.dev/key"
	// AnnotationEnded is the fencing token of the newest tenure that ended on a pod while it lived.
	AnnotationEnded = "conch.dev/ended"

	// AnnotationRelease on a DistributedLock asks for a hand-over, if it names the present fencing token.
	AnnotationRelease = "conch.dev/release"
	// AnnotationConfirmDead on a DistributedLock states that the holder with this fencing token is dead.
	AnnotationConfirmDead = "conch.dev/confirm-dead"
)
