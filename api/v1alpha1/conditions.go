package v1alpha1

// Condition types of a DistributedLock. Each is set in every status.
const (
	// ConditionReady is True while conch does for the lock what its spec asks, whoever holds it.
	ConditionReady = "Ready"
	// ConditionHeld is True only while a candidate of this cluster holds the lock and may work.
	ConditionHeld = "Held"
	// ConditionBackendReady is True while the lock's backend answers this cluster.
	ConditionBackendReady = "BackendReady"
	// ConditionFenced is False while a former holder has yet to be made harmless.
	ConditionFenced = "Fenced"
	// ConditionClusterIdentityConflict is True while another cluster uses this cluster's identity.
	ConditionClusterIdentityConflict = "ClusterIdentityConflict"
)

// Reasons of ConditionReady.
const (
	// ReasonOK: nothing is wrong.
	ReasonOK = "OK"
	// ReasonKeyNotAllowed: the key is too long, or conch's configuration does not allow this raw key here.
	ReasonKeyNotAllowed = "KeyNotAllowed"
	// ReasonNamespaceNotAllowed: conch's configuration leaves this namespace out.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonInvalidTiming: the effective durations do not fit into the ttl.
	ReasonInvalidTiming = "InvalidTiming"
	// ReasonOwnerGone: the workload that owns the lock is gone, and another one of its name waits until the garbage
	// collector has taken it.
	ReasonOwnerGone = "OwnerGone"
	// ReasonTTLTooShort: the lock works, but its ttl is too short to survive a slow node or network.
	ReasonTTLTooShort = "TTLTooShort"
	// ReasonOthersActive: candidates run that do not hold the lock; nobody is started beside them.
	ReasonOthersActive = "OthersActive"
)

// Reasons of ConditionHeld while this cluster holds, or is about to.
const (
	// ReasonAcquired: the lock was acquired for the holder in status.
	ReasonAcquired = "Acquired"
	// ReasonAdopted: a running holder was found by the record that it bears.
	ReasonAdopted = "Adopted"
	// ReasonSettling: acquired, but a holder of before may still run, so nothing starts until notBefore.
	ReasonSettling = "Settling"
	// ReasonSettled: the wait for the holder before is over.
	ReasonSettled = "Settled"
	// ReasonStarted: the holder was let go.
	ReasonStarted = "Started"
	// ReasonRunning: the holder runs.
	ReasonRunning = "Running"
)

// Reasons of ConditionHeld while this cluster does not hold. ReasonHeldHere is for waiters.
const (
	// ReasonWaiting: a candidate waits for its turn.
	ReasonWaiting = "Waiting"
	// ReasonContending: the lock is being asked for.
	ReasonContending = "Contending"
	// ReasonNoCandidate: nobody here wants the lock.
	ReasonNoCandidate = "NoCandidate"
	// ReasonHeldHere: another candidate of this lock has it.
	ReasonHeldHere = "HeldHere"
	// ReasonHeldElsewhere: a candidate in another cluster has the lock; status.holder names it.
	ReasonHeldElsewhere = "HeldElsewhere"
	// ReasonHeldBeside: another lock of this cluster has the same key.
	ReasonHeldBeside = "HeldBeside"
	// ReasonHeldByForeign: something that is not conch has the key.
	ReasonHeldByForeign = "HeldByForeign"
	// ReasonReleased: the lock was given back.
	ReasonReleased = "Released"
	// ReasonBlocked: the lock's spec or conch's configuration keep candidates from contending.
	ReasonBlocked = "Blocked"
	// ReasonDraining: this cluster takes no new locks.
	ReasonDraining = "Draining"
	// ReasonCannotTell: the backend does not say who has the lock.
	ReasonCannotTell = "CannotTell"
)

// Reasons for which a tenure ends; they stand in ConditionHeld meanwhile and in the history.
const (
	// ReasonLockLost: the key went to another, or is gone and cannot be taken again.
	ReasonLockLost = "LockLost"
	// ReasonBackendLost: the grant runs out and the backend does not answer.
	ReasonBackendLost = "BackendLost"
	// ReasonTenureBroken: the key vanished under the holder and was taken again for it.
	ReasonTenureBroken = "TenureBroken"
	// ReasonLockDeleted: the DistributedLock was deleted.
	ReasonLockDeleted = "LockDeleted"
	// ReasonReleaseRequested: an operator asked for it with AnnotationRelease.
	ReasonReleaseRequested = "ReleaseRequested"
	// ReasonMaxHoldReached: maxHold is over.
	ReasonMaxHoldReached = "MaxHoldReached"
	// ReasonStartDeadlineExceeded: the holder did not run for startDeadline and others wait.
	ReasonStartDeadlineExceeded = "StartDeadlineExceeded"
	// ReasonHandOver: a newer revision of the same workload takes over.
	ReasonHandOver = "HandOver"
	// ReasonLockChanged: the holder's workload names another lock by now, and a newer revision of it has that
	// one, or others wait for this one.
	ReasonLockChanged = "LockChanged"
	// ReasonLeaderNotReady: the leader was not ready for long while another candidate was.
	ReasonLeaderNotReady = "LeaderNotReady"
	// ReasonHolderGone: the holder has ended or was deleted.
	ReasonHolderGone = "HolderGone"
	// ReasonHolderFinished: the Job that held is complete, or has failed for good.
	ReasonHolderFinished = "HolderFinished"
	// ReasonHolderUnmarked: the holder no longer bears the mark.
	ReasonHolderUnmarked = "HolderUnmarked"
	// ReasonGateBypassed: the holder's gate was lifted by someone else.
	ReasonGateBypassed = "GateBypassed"
)

// Reasons of ConditionFenced.
const (
	// ReasonNotNeeded: there is no former holder to stop.
	ReasonNotNeeded = "NotNeeded"
	// ReasonInProgress: the former holder was told to stop and has not been seen dead.
	ReasonInProgress = "InProgress"
	// ReasonConfirmed: the former holder is confirmed dead.
	ReasonConfirmed = "Confirmed"
	// ReasonUnconfirmed: the lock is given back without confirmed death; two may overlap.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonHolderUnreachable: the holder's node does not answer, so its death cannot be confirmed.
	ReasonHolderUnreachable = "HolderUnreachable"
)

// Reasons of ConditionBackendReady; all but the first two are those of pkg/lock.
const (
	// ReasonAnswering: the backend answers.
	ReasonAnswering = "Answering"
	// ReasonUnknownBackend: conch's configuration has no backend of this name.
	ReasonUnknownBackend = "UnknownBackend"
	// ReasonUnreachable: no connection could be made.
	ReasonUnreachable = "Unreachable"
	// ReasonTimeout: connected, no answer in time.
	ReasonTimeout = "Timeout"
	// ReasonNoAuth: the server wants a password and none is configured.
	ReasonNoAuth = "NoAuth"
	// ReasonWrongPass: the server refused user or password.
	ReasonWrongPass = "WrongPass"
	// ReasonNoPerm: the user lacks the right to a command or key.
	ReasonNoPerm = "NoPerm"
	// ReasonReadOnly: a replica answered.
	ReasonReadOnly = "ReadOnly"
	// ReasonWrongType: a helper key has another type.
	ReasonWrongType = "WrongType"
	// ReasonMoved: a Redis Cluster answered a client that was configured for one server.
	ReasonMoved = "Moved"
	// ReasonLoading: the server reads its data, or a replica has no master.
	ReasonLoading = "Loading"
	// ReasonLayoutTooNew: a newer release of conch wrote the store's layout; this one takes nothing.
	ReasonLayoutTooNew = "LayoutTooNew"
	// ReasonTLS: the TLS handshake failed.
	ReasonTLS = "TLS"
	// ReasonNoReply: the answer came too late to be worth anything.
	ReasonNoReply = "NoReply"
	// ReasonBackendError: anything else; the message has it.
	ReasonBackendError = "BackendError"
)

// Reasons of ConditionClusterIdentityConflict.
const (
	// ReasonUnique: no other cluster uses this identity.
	ReasonUnique = "Unique"
	// ReasonClusterIdentityConflict: another cluster does; nothing is taken, started or given back.
	ReasonClusterIdentityConflict = "ClusterIdentityConflict"
)

// Reasons in status.recentTicks: why a scheduled run was started, ended or skipped here.
const (
	// ReasonClaimed: this cluster has claimed the run and has not started it yet.
	ReasonClaimed = "Claimed"
	// ReasonRunsElsewhere: another cluster has started the run, or ended it, so this one deleted its Job.
	ReasonRunsElsewhere = "RunsElsewhere"
	// ReasonSuperseded: under Forbid or Replace a newer run was started before.
	ReasonSuperseded = "Superseded"
	// ReasonTooOld: the run is more than a day old; whether it ran may be forgotten by now.
	ReasonTooOld = "TooOld"
	// ReasonStartingDeadlineExceeded: the CronJob's startingDeadlineSeconds were over before the run could start.
	ReasonStartingDeadlineExceeded = "StartingDeadlineExceeded"
	// ReasonLostAfterStart: the lock was lost while the run was under way; it was stopped and is not run again, save in another cluster
	// with retryElsewhere.
	ReasonLostAfterStart = "LostAfterStart"
	// ReasonJobDeleted: somebody deleted the Job of the run.
	ReasonJobDeleted = "JobDeleted"
	// ReasonEnded: the Job came to its end.
	ReasonEnded = "Ended"
)
