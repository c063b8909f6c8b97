package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the lists in a status.
const (
	// MaxHistory is how many ended tenures a status keeps.
	MaxHistory = 10
	// MaxWaiterNames is how many waiters a status names.
	MaxWaiterNames = 5
	// MaxRecentTicks is how many scheduled runs a status keeps.
	MaxRecentTicks = 20
)

// State is where a lock stands in this cluster.
// +kubebuilder:validation:Enum=Idle;Waiting;Settling;Held;Fencing;Releasing
type State string

const (
	// StateIdle: nobody here wants it.
	StateIdle State = "Idle"
	// StateWaiting: somebody here wants it and does not have it.
	StateWaiting State = "Waiting"
	// StateSettling: it is ours, but a holder of before may still run, so
	// nothing starts yet.
	StateSettling State = "Settling"
	// StateHeld: it is ours.
	StateHeld State = "Held"
	// StateFencing: the holder is being stopped.
	StateFencing State = "Fencing"
	// StateReleasing: the holder has stopped, the key is being given back.
	StateReleasing State = "Releasing"
)

// DistributedLockStatus is what this cluster's conch knows of a lock.
type DistributedLockStatus struct {
	// state is Idle, Waiting, Settling, Held, Fencing or Releasing, as seen by
	// this cluster.
	// +optional
	State State `json:"state,omitempty"`

	// holder is who has the lock, here or in another cluster. Unset: nobody, as
	// far as known.
	// +optional
	Holder *Holder `json:"holder,omitempty"`

	// token is what stands in Redis for the holder: its identity, # and the
	// fencing token. Not a secret.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Token string `json:"token,omitempty"`

	// fencingToken grows with every acquisition. Systems that the holder writes
	// to should refuse lower ones. A whole number of up to 53 bits, about
	// 1.8e12.
	// +optional
	FencingToken int64 `json:"fencingToken,omitempty"`

	// highestSeen is the highest fencing token ever seen, of this cluster or
	// another; the next one is higher. A whole number.
	// +optional
	HighestSeen int64 `json:"highestSeen,omitempty"`

	// acquiredAt is when the tenure began; RFC 3339 with microseconds.
	// +optional
	AcquiredAt *metav1.MicroTime `json:"acquiredAt,omitempty"`

	// notBefore is when the holder may start at the earliest; RFC 3339 with
	// microseconds.
	// +optional
	NotBefore *metav1.MicroTime `json:"notBefore,omitempty"`

	// startedAt is when the holder's gate was lifted or its label set; RFC 3339
	// with microseconds.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// tenures counts how often this cluster has held the lock. A whole number.
	// +optional
	Tenures int64 `json:"tenures,omitempty"`

	// waiters sums up who in this cluster wants the lock and does not have it.
	// Unset: nobody.
	// +optional
	Waiters *Waiters `json:"waiters,omitempty"`

	// history is the last 10 tenures of this cluster that have ended, newest
	// first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []Tenure `json:"history,omitempty"`

	// recentTicks is the last 20 scheduled runs of a CronJob, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	RecentTicks []Tick `json:"recentTicks,omitempty"`

	// effective is the values in force: the spec's, and the defaults where it
	// has none.
	// +optional
	Effective *Effective `json:"effective,omitempty"`

	// observedGeneration is the metadata.generation that this status was
	// computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Held, BackendReady, Fenced and
	// ClusterIdentityConflict. Held is True only where this cluster holds.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Holder is who has a lock. It lives in the lock's namespace.
type Holder struct {
	// cluster is the identity of the holder's cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// kind is the holder's kind: Pod, Job, Deployment or StatefulSet.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the holder's name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the holder's UID.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`

	// identity is the owner in Redis: cluster/namespace/kind/name/uid/nonce.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Identity string `json:"identity,omitempty"`

	// node is the node that the holder runs on. Unset: not bound yet, or in
	// another cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// bootID is the boot of that node; another one later proves that the holder
	// is dead.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`

	// gracePeriodSeconds is the holder's own termination grace, in seconds.
	// +optional
	GracePeriodSeconds int64 `json:"gracePeriodSeconds,omitempty"`
}

// Waiters sums up who waits.
type Waiters struct {
	// count is how many wait. A whole number.
	// +optional
	Count int32 `json:"count,omitempty"`

	// names are the first 5 of them, the next in line first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// reason is why they wait, as a reason of the condition Held.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// Tenure is one unbroken hold that has ended.
type Tenure struct {
	// holder is the name of who held.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder,omitempty"`

	// cluster is the holder's cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// fencingToken is the tenure's fencing token. A whole number.
	// +optional
	FencingToken int64 `json:"fencingToken,omitempty"`

	// from is when the lock was acquired; RFC 3339 with microseconds.
	// +optional
	From *metav1.MicroTime `json:"from,omitempty"`

	// to is when the tenure had ended; RFC 3339 with microseconds.
	// +optional
	To *metav1.MicroTime `json:"to,omitempty"`

	// reason is why it ended.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
}

// Tick is one scheduled run of a CronJob, as far as this cluster has to do with it.
type Tick struct {
	// scheduledAt is the minute that the schedule names, in UTC.
	ScheduledAt metav1.Time `json:"scheduledAt"`

	// cluster is where the run was started: here, or in the cluster that ran it
	// while it was skipped here. Empty where nobody is known to have run it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// cronJob is the name of the CronJob.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CronJob string `json:"cronJob,omitempty"`

	// job is the name of this cluster's Job.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Job string `json:"job,omitempty"`

	// uid is the Job's UID.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`

	// outcome is started, stopping, waiting (it was put back), succeeded, failed
	// or skipped.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Outcome string `json:"outcome,omitempty"`

	// reason is why, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message says the same in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// token is what stands in Redis for a run of this cluster; its fencing token
	// and its owner are part of it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Token string `json:"token,omitempty"`

	// fencingToken is the run's fencing token. A whole number.
	// +optional
	FencingToken int64 `json:"fencingToken,omitempty"`

	// startedAt is when the run was recorded as started; RFC 3339 with
	// microseconds.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// spent is the fencing token of a start that came to nothing, so that the
	// run was put back.
	// +optional
	Spent int64 `json:"spent,omitempty"`
}

// Effective is the values in force for a lock. People read it; conch itself computes them anew.
type Effective struct {
	// key is the whole key in Redis, without conch's prefix.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// scope is the clusterSet or cluster whose candidates contend, or raw for a
	// raw key.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Scope string `json:"scope,omitempty"`

	// backend is the backend's name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Backend string `json:"backend,omitempty"`

	// ttl is how long a grant lasts without renewal, a duration.
	TTL metav1.Duration `json:"ttl"`

	// renewInterval is the time from one renewal to the next, a duration.
	RenewInterval metav1.Duration `json:"renewInterval"`

	// fenceGrace is how long a holder gets to stop, a duration.
	FenceGrace metav1.Duration `json:"fenceGrace"`

	// margin is how long before fenceGrace must begin that fencing starts, a
	// duration.
	Margin metav1.Duration `json:"margin"`

	// takeoverDelay is the wait before a start after an unclean end elsewhere, a
	// duration.
	TakeoverDelay metav1.Duration `json:"takeoverDelay"`

	// maxHold ends a tenure after this long, a duration. Unset: never.
	// +optional
	MaxHold *metav1.Duration `json:"maxHold,omitempty"`

	// startDeadline is how long a holder may be not running while others wait, a
	// duration.
	StartDeadline metav1.Duration `json:"startDeadline"`

	// onBackendLoss is Hold or Fence.
	// +optional
	OnBackendLoss BackendLoss `json:"onBackendLoss,omitempty"`
}
