package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxHistory is how many ended tenures a status keeps.
	MaxHistory = 10
	// MaxWaiterNames is how many waiting candidates a status names.
	MaxWaiterNames = 5
	// ScopeRaw is the scope of a key that stands in the store as written.
	ScopeRaw = "raw"
)

// BackendLoss says what happens to a holder when the backend cannot be reached.
// +kubebuilder:validation:Enum=Hold;Fence
type BackendLoss string

const (
	// BackendLossHold keeps the holder running.
	BackendLossHold BackendLoss = "Hold"
	// BackendLossFence stops the holder before the lock runs out.
	BackendLossFence BackendLoss = "Fence"
)

// Demote says how leadership leaves a pod.
// +kubebuilder:validation:Enum=Restart;Demote
type Demote string

const (
	// DemoteRestart ends the pod; the next one leads after its confirmed death.
	DemoteRestart Demote = "Restart"
	// DemoteDemote takes the label off and lets the process live.
	DemoteDemote Demote = "Demote"
)

// Unreachable says what happens when the holder's node is gone and its end cannot be confirmed.
// +kubebuilder:validation:Enum=Hold;Release
type Unreachable string

const (
	// UnreachableHold keeps the lock until the end is confirmed.
	UnreachableHold Unreachable = "Hold"
	// UnreachableRelease gives the lock back all the same; two holders may then overlap.
	UnreachableRelease Unreachable = "Release"
)

// DistributedLockSpec is what a user asks for. Durations are written with a unit, such as 30s, 5m
// or 1h30m. Values that depend on others are shown in status.effective, never written into spec.
// +kubebuilder:validation:XValidation:rule="has(self.key) == has(oldSelf.key) && (!has(self.key) || self.key == oldSelf.key)",message="key cannot be changed, added or removed: create another DistributedLock",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="has(self.rawKey) == has(oldSelf.rawKey) && (!has(self.rawKey) || self.rawKey == oldSelf.rawKey)",message="rawKey cannot be changed, added or removed: create another DistributedLock",fieldPath=".rawKey"
// +kubebuilder:validation:XValidation:rule="!(has(self.key) && has(self.rawKey))",message="write either key or rawKey, not both",fieldPath=".rawKey"
// +kubebuilder:validation:XValidation:rule="self.backend == oldSelf.backend",message="backend cannot be changed: create another DistributedLock",fieldPath=".backend"
// +kubebuilder:validation:XValidation:rule="!has(self.renewInterval) || duration(self.renewInterval) + duration(self.renewInterval) + (has(self.fenceGrace) ? duration(self.fenceGrace) : duration('2s')) <= duration(self.ttl)",message="2 x renewInterval + fenceGrace (at least 2s) + a margin must fit into ttl: raise ttl or lower renewInterval",fieldPath=".renewInterval"
// +kubebuilder:validation:XValidation:rule="!has(self.fenceGrace) || duration(self.fenceGrace) < duration(self.ttl)",message="fenceGrace must be shorter than ttl: lower it, or raise ttl",fieldPath=".fenceGrace"
type DistributedLockSpec struct {
	// key is the name of the lock inside its scope and namespace; the object's name by default.
	// Candidates of all clusters of a clusterSet that use the same namespace and key share the lock.
	// Cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$`
	Key string `json:"key,omitempty"`

	// rawKey is the exact key in the store, shared with programs that know nothing of conch. It
	// excludes key, and conch's configuration must allow it for this namespace. None by default.
	// Cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	RawKey string `json:"rawKey,omitempty"`

	// ttl is how long the lock lasts without a renewal: a duration from 5s to 24h, 60s by default. It
	// may be changed while the lock is held, and takes effect at the next renewal.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$')",message="write a duration with a unit, such as 30s, 5m or 1h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('5s') && duration(self) <= duration('24h'))",message="ttl must be between 5s and 24h: write 15s or more for workloads"
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// renewInterval is how often the lock is renewed: a duration, ttl/6 by default.
	// 2 x renewInterval + fenceGrace + margin must fit into ttl.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$')",message="write a duration with a unit, such as 5s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('100ms') && duration(self) <= duration('12h'))",message="renewInterval must be between 100ms and 12h"
	RenewInterval *metav1.Duration `json:"renewInterval,omitempty"`

	// fenceGrace is how long a holder gets to stop before the lock runs out: whole seconds, ttl/6 but
	// at least 2s by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="write whole seconds with a unit, such as 10s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(s|m|h))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('12h'))",message="fenceGrace must be between 1s and 12h"
	FenceGrace *metav1.Duration `json:"fenceGrace,omitempty"`

	// takeoverDelay is how long a start waits after a tenure in another cluster that did not end
	// cleanly, after data loss, or after a holder outside conch: a duration, by default renewInterval +
	// fenceGrace + margin. It has no meaning for a lock of one cluster.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$')",message="write a duration with a unit, such as 20s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('24h')",message="takeoverDelay must be at most 24h"
	TakeoverDelay *metav1.Duration `json:"takeoverDelay,omitempty"`

	// maxHold ends a tenure after this long: a duration of at least 10s. No limit by default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$')",message="write a duration with a unit, such as 12h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('10s') && duration(self) <= duration('8760h'))",message="maxHold must be between 10s and 8760h"
	MaxHold *metav1.Duration `json:"maxHold,omitempty"`

	// startDeadline is how long a holder may be not running while another candidate waits, before it
	// gives the lock back: a duration, 5m by default.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$')",message="write a duration with a unit, such as 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="startDeadline must be between 1s and 24h"
	StartDeadline *metav1.Duration `json:"startDeadline,omitempty"`

	// backend is the name of a backend in conch's configuration; default by default. Cannot be changed.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Backend string `json:"backend,omitempty"`

	// onBackendLoss says what happens while the backend cannot be reached. Hold keeps the holder
	// running, Fence stops it before the lock runs out. By default Hold for a lock of one cluster, Fence
	// for one that clusters or other programs share.
	// +optional
	OnBackendLoss BackendLoss `json:"onBackendLoss,omitempty"`

	// onDemote says how leadership leaves a pod. Restart, the default, ends the pod, and the next one
	// leads after its confirmed death. Demote takes the label off and lets the process live.
	// +optional
	// +kubebuilder:default=Restart
	OnDemote Demote `json:"onDemote,omitempty"`

	// onUnreachable says what happens when the holder's node is gone and its end cannot be confirmed.
	// Hold, the default, keeps the lock. Release gives it back; two holders may then overlap.
	// +optional
	// +kubebuilder:default=Hold
	OnUnreachable Unreachable `json:"onUnreachable,omitempty"`

	// retryElsewhere lets a scheduled run that was started and lost run again in another cluster. false
	// by default.
	// +optional
	// +kubebuilder:default=false
	RetryElsewhere *bool `json:"retryElsewhere,omitempty"`
}

// State is where a lock stands in this cluster.
// +kubebuilder:validation:Enum=Idle;Waiting;Settling;Held;Fencing;Releasing
type State string

// DistributedLockStatus is what conch observed and decided. It changes on transitions only; renewals
// are not written here.
type DistributedLockStatus struct {
	// state is where the lock stands in this cluster: Idle (nobody here wants it), Waiting, Settling
	// (ours, the holder before may still run), Held, Fencing (the holder is being stopped), Releasing.
	// +optional
	State State `json:"state,omitempty"`
	// holder is who has the lock, here or in another cluster.
	// +optional
	Holder *Holder `json:"holder,omitempty"`
	// token is what stands in the store: the holder's identity, # and the fencing token.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Token string `json:"token,omitempty"`
	// fencingToken is a number that grows with every acquisition, about 1.8e12. Zero if nobody holds.
	// +optional
	FencingToken int64 `json:"fencingToken,omitempty"`
	// highestSeen is the highest fencing token seen for this key, own or foreign.
	// +optional
	HighestSeen int64 `json:"highestSeen,omitempty"`
	// acquiredAt is when the present tenure began.
	// +optional
	AcquiredAt *metav1.MicroTime `json:"acquiredAt,omitempty"`
	// notBefore is when the present holder may start at the earliest.
	// +optional
	NotBefore *metav1.MicroTime `json:"notBefore,omitempty"`
	// startedAt is when the present holder was seen started: its gate lifted, or its label set.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// tenures counts the acquisitions by this cluster.
	// +optional
	Tenures int64 `json:"tenures,omitempty"`
	// waiters sums up who in this cluster wants the lock and does not have it.
	// +optional
	Waiters *Waiters `json:"waiters,omitempty"`
	// history has this cluster's last 10 ended tenures, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []Tenure `json:"history,omitempty"`
	// recentTicks has the last 20 scheduled runs of CronJobs, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	RecentTicks []Tick `json:"recentTicks,omitempty"`
	// effective has the values that hold after defaults.
	// +optional
	Effective *Effective `json:"effective,omitempty"`
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Held, BackendReady, Fenced and ClusterIdentityConflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Holder is one candidate that has a lock.
type Holder struct {
	// cluster is the identity of the holder's cluster.
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster"`
	// kind is the holder's kind, such as Pod.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name is the holder's name.
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
	// uid is the holder's UID: its identity.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// identity is who the holder is to the store: cluster/namespace/kind/name/uid/nonce.
	// +kubebuilder:validation:MaxLength=1024
	Identity string `json:"identity"`
	// node is where the holder was bound.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// bootID is the boot of that node under which the holder was started.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BootID string `json:"bootID,omitempty"`
	// gracePeriodSeconds is the holder's own termination grace period, in seconds.
	// +optional
	GracePeriodSeconds int64 `json:"gracePeriodSeconds,omitempty"`
}

// Waiters sums up waiting candidates.
type Waiters struct {
	// count is how many candidates of this cluster wait.
	Count int32 `json:"count"`
	// names are the first five of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`
	// reason is why they wait, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
}

// Tenure is one unbroken hold that has ended.
type Tenure struct {
	// holder is the holder's name.
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`
	// cluster is the holder's cluster.
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster"`
	// fencingToken is the tenure's fencing token.
	FencingToken int64 `json:"fencingToken"`
	// from is when the tenure began.
	// +optional
	From *metav1.MicroTime `json:"from,omitempty"`
	// to is when it ended.
	// +optional
	To *metav1.MicroTime `json:"to,omitempty"`
	// reason is why it ended, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
}

// Tick is one scheduled run of a CronJob.
type Tick struct {
	// scheduledAt is the planned time.
	ScheduledAt metav1.Time `json:"scheduledAt"`
	// cluster is where it ran, empty if it did not.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
	// outcome is how it ended, in one word.
	// +kubebuilder:validation:MaxLength=64
	Outcome string `json:"outcome"`
}

// Effective has the values that hold after defaults. Durations are strings such as 10s.
type Effective struct {
	// key is the key inside conch's prefix, or the raw key, as it stands in the store.
	Key string `json:"key"`
	// scope is the clusterSet or the cluster that the key belongs to, or raw.
	Scope string `json:"scope"`
	// backend is the name of the backend.
	Backend string `json:"backend"`
	// ttl is how long the lock lasts without a renewal.
	TTL metav1.Duration `json:"ttl"`
	// renewInterval is how often it is renewed.
	RenewInterval metav1.Duration `json:"renewInterval"`
	// fenceGrace is how long a holder gets to stop.
	FenceGrace metav1.Duration `json:"fenceGrace"`
	// margin is added to fenceGrace: ttl/12, at most 5s.
	Margin metav1.Duration `json:"margin"`
	// takeoverDelay is how long a start waits after a tenure that did not end cleanly.
	TakeoverDelay metav1.Duration `json:"takeoverDelay"`
	// startDeadline is how long a holder may be not running while another candidate waits.
	StartDeadline metav1.Duration `json:"startDeadline"`
	// maxHold is how long a tenure may last; absent if it may last forever.
	// +optional
	MaxHold *metav1.Duration `json:"maxHold,omitempty"`
	// onBackendLoss is what happens while the backend cannot be reached.
	OnBackendLoss BackendLoss `json:"onBackendLoss"`
}

// DistributedLock is a lock in a store outside the cluster, and what this cluster makes of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dlock,categories=conch
// +kubebuilder:printcolumn:name="HOLDER",type=string,JSONPath=`.status.holder.name`
// +kubebuilder:printcolumn:name="CLUSTER",type=string,JSONPath=`.status.holder.cluster`
// +kubebuilder:printcolumn:name="FENCING-TOKEN",type=integer,JSONPath=`.status.fencingToken`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="SINCE",type=date,JSONPath=`.status.acquiredAt`
// +kubebuilder:printcolumn:name="WAITING",type=integer,JSONPath=`.status.waiters.count`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="KEY",type=string,priority=1,JSONPath=`.status.effective.key`
// +kubebuilder:printcolumn:name="SCOPE",type=string,priority=1,JSONPath=`.status.effective.scope`
// +kubebuilder:printcolumn:name="TTL",type=string,priority=1,JSONPath=`.status.effective.ttl`
// +kubebuilder:printcolumn:name="NODE",type=string,priority=1,JSONPath=`.status.holder.node`
type DistributedLock struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is asked for.
	// +optional
	// +kubebuilder:default={}
	Spec DistributedLockSpec `json:"spec,omitempty"`
	// status is what conch observed and decided.
	// +optional
	Status DistributedLockStatus `json:"status,omitempty"`
}

// DistributedLockList is a list of locks.
//
// +kubebuilder:object:root=true
type DistributedLockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DistributedLock `json:"items"`
}
