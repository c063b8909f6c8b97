package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopeRaw is the effective scope of a lock with a raw key: whoever reaches the backend contends.
const ScopeRaw = "raw"

// BackendLoss says what happens to a holder while the backend cannot be reached.
// +kubebuilder:validation:Enum=Hold;Fence
type BackendLoss string

const (
	// BackendLossHold keeps the holder running; it is stopped only once another
	// owns the key.
	BackendLossHold BackendLoss = "Hold"
	// BackendLossFence stops the holder before its grant ends.
	BackendLossFence BackendLoss = "Fence"
)

// Demote says what happens to a leader that loses the lead.
// +kubebuilder:validation:Enum=Restart;Demote
type Demote string

const (
	// DemoteRestart ends the pod; the next one leads after its confirmed death.
	DemoteRestart Demote = "Restart"
	// DemoteDemote takes label and token off a pod that runs on, and may act
	// until it notices.
	DemoteDemote Demote = "Demote"
)

// Unreachable says what happens while the death of a holder cannot be confirmed.
// +kubebuilder:validation:Enum=Hold;Release
type Unreachable string

const (
	// UnreachableHold waits until the death is confirmed by the cluster or by an
	// operator.
	UnreachableHold Unreachable = "Hold"
	// UnreachableRelease gives the lock back after fenceGrace; two holders may
	// overlap.
	UnreachableRelease Unreachable = "Release"
)

// DistributedLockSpec is what a user asks of a lock. Durations are strings of hours, minutes, seconds
// and milliseconds, in that order and with units: 90s, 1h30m, 500ms. Where a default depends on other
// fields, the effective value stands in status.effective.
//
// Rules that compare durations keep quiet where one of them is malformed; the field's own rule tells.
// +kubebuilder:validation:XValidation:rule="has(self.key) == has(oldSelf.key) && (!has(self.key) || self.key == oldSelf.key)",message="key cannot be added, changed or removed: make a new DistributedLock",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="has(self.rawKey) == has(oldSelf.rawKey) && (!has(self.rawKey) || self.rawKey == oldSelf.rawKey)",message="rawKey cannot be added, changed or removed: make a new DistributedLock",fieldPath=".rawKey"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || !has(self.rawKey)",message="write key or rawKey, not both",fieldPath=".rawKey"
// +kubebuilder:validation:XValidation:rule="[has(self.ttl) ? self.ttl : '60s', has(self.renewInterval) ? self.renewInterval : '0s', has(self.fenceGrace) ? self.fenceGrace : '0s'].exists(d, size(d) == 0 || !d.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')) || [[has(self.ttl) ? self.ttl : '60s', has(self.renewInterval) ? self.renewInterval : '0s', has(self.fenceGrace) ? self.fenceGrace : '0s'].map(d, timestamp(0) + duration(d)).map(t, int(t) * 1000 + t.getMilliseconds())].all(v, v[0] < 5000 || (v[1] > 0 ? 2 * v[1] : v[0] / 3) + (v[2] > 0 ? v[2] : v[0] < 18000 ? 2000 : v[0] / 6000 * 1000) + (v[0] < 60000 ? v[0] / 12 : 5000) <= v[0])",message="2 x renewInterval + fenceGrace + margin (ttl/12, at most 5s) do not fit into ttl: write at most ttl/6 as renewInterval and at most ttl/2 as fenceGrace, leave both out, or raise ttl",fieldPath=".ttl"
type DistributedLockSpec struct {
	// key is the name of the lock inside its scope (the clusterSet, else the
	// cluster) and namespace; 1 to 253 bytes, of which %, { and } take three
	// each. In Redis it stands as <scope>/<namespace>/<key>, and that must fit
	// into 253 bytes too. Immutable. Default: the name of the DistributedLock.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self.replace('%', '%25').replace('{', '%7B').replace('}', '%7D'))) <= 253",message="key is too long: write at most 253 bytes of UTF-8, where %, { and } count three"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\x{FFFD}]')",message="key must be valid UTF-8 without control characters: write plain text"
	Key string `json:"key,omitempty"`

	// rawKey is the exact key in Redis, 1 to 253 bytes, shared with programs
	// that know nothing of conch. conch's configuration must allow it for this
	// namespace. Excludes key. Immutable. Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="rawKey is too long: write at most 253 bytes of UTF-8"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\x{FFFD}]')",message="rawKey must be valid UTF-8 without control characters: write plain text"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('conch:')",message="rawKey must not begin with conch: because conch keeps its own keys there; use key for a lock of conch"
	RawKey string `json:"rawKey,omitempty"`

	// ttl is how long a grant lasts without renewal; a duration from 5s to 24h.
	// May change while the lock is held; takes effect at the next renewal. Under
	// 15s it is reported as TTLTooShort. Default: 60s.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')",message="write a number and a unit, like 60s, 5m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$') || (duration(self) >= duration('5s') && duration(self) <= duration('24h'))",message="ttl must be from 5s to 24h: write 15s or more for workloads, 60s if in doubt"
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// renewInterval is the time from one renewal to the next; a duration from
	// 100ms. Twice renewInterval, fenceGrace and the margin (ttl/12, at most 5s)
	// must fit into ttl. Default: ttl/6.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')",message="write a number and a unit, like 10s or 500ms"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$') || (duration(self) >= duration('100ms') && duration(self) <= duration('12h'))",message="renewInterval must be from 100ms to 12h: write ttl/6, or leave it out"
	RenewInterval *metav1.Duration `json:"renewInterval,omitempty"`

	// fenceGrace is how long a holder gets to stop; a duration in whole seconds
	// from 1s. Default: ttl/6 in whole seconds, at least 2s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$')",message="write whole seconds with a unit, like 10s or 1m"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') || (duration(self) >= duration('1s') && duration(self) <= duration('12h'))",message="fenceGrace must be from 1s to 12h: write ttl/6, or leave it out"
	FenceGrace *metav1.Duration `json:"fenceGrace,omitempty"`

	// takeoverDelay is how long locks shared with other clusters or programs
	// wait before they start a holder after a tenure elsewhere that did not end
	// cleanly, after data loss and after a foreign holder; a duration from 1s to
	// 24h. Default: renewInterval + fenceGrace + margin.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')",message="write a number and a unit, like 30s or 2m"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="takeoverDelay must be from 1s to 24h"
	TakeoverDelay *metav1.Duration `json:"takeoverDelay,omitempty"`

	// maxHold ends a tenure after this long; a duration from 5s to 8760h.
	// Default: none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')",message="write a number and a unit, like 12h or 30m"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$') || (duration(self) >= duration('5s') && duration(self) <= duration('8760h'))",message="maxHold must be from 5s to 8760h"
	MaxHold *metav1.Duration `json:"maxHold,omitempty"`

	// startDeadline is how long a holder may be not running, at first or later,
	// before it gives the lock to another that waits; a duration from 1s to 24h.
	// Default: 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$')",message="write a number and a unit, like 5m or 90s"
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !self.matches('^([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="startDeadline must be from 1s to 24h"
	StartDeadline *metav1.Duration `json:"startDeadline,omitempty"`

	// backend names a backend of conch's configuration; 1 to 63 bytes: letters,
	// digits, dots, dashes and underscores. Immutable. Default: default.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$')",message="write the name of a backend of conch's configuration: letters, digits, dots, dashes and underscores"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="backend cannot be changed: make a new DistributedLock"
	Backend string `json:"backend,omitempty"`

	// onBackendLoss is Hold or Fence: whether a holder runs on while Redis
	// cannot be reached, or is stopped before its grant ends. Default: Hold for
	// a lock of one cluster, Fence for one shared with others.
	// +optional
	OnBackendLoss BackendLoss `json:"onBackendLoss,omitempty"`

	// onDemote is Restart or Demote: whether a leader that loses the lead is
	// restarted, or runs on without label and token. Default: Restart.
	// +optional
	// +kubebuilder:default=Restart
	OnDemote Demote `json:"onDemote,omitempty"`

	// onUnreachable is Hold or Release: whether the lock waits while the death
	// of its holder cannot be confirmed, or is given back so that two may
	// overlap. Default: Hold.
	// +optional
	// +kubebuilder:default=Hold
	OnUnreachable Unreachable `json:"onUnreachable,omitempty"`

	// retryElsewhere is true if a scheduled run that was started and lost its
	// lock, or its cluster, runs again in another cluster whose Job waits for
	// that. Write it in every cluster, and only for runs that may be repeated.
	// Without effect under concurrencyPolicy Allow, where a run has no lock but
	// its own. Default: false.
	// +optional
	// +kubebuilder:default=false
	RetryElsewhere *bool `json:"retryElsewhere,omitempty"`
}

// DistributedLock is a lock in Redis that pods, Jobs and clusters contend for. One of them holds it and
// works; the others wait.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dlock,categories=conch
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:selectablefield:JSONPath=`.status.holder.cluster`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.status.holder.name`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.holder.cluster`
// +kubebuilder:printcolumn:name="Fencing-Token",type=integer,JSONPath=`.status.fencingToken`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.acquiredAt`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiters.count`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Key",type=string,priority=1,JSONPath=`.status.effective.key`
// +kubebuilder:printcolumn:name="Scope",type=string,priority=1,JSONPath=`.status.effective.scope`
// +kubebuilder:printcolumn:name="TTL",type=string,priority=1,JSONPath=`.status.effective.ttl`
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.holder.node`
type DistributedLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the lock is asked to be. Default: all defaults, with the
	// object's name as key.
	// +optional
	// +kubebuilder:default={}
	Spec DistributedLockSpec `json:"spec,omitempty"`

	// status is what the lock is, as this cluster's conch last saw it. Renewals
	// are not written here.
	// +optional
	Status DistributedLockStatus `json:"status,omitempty"`
}

// DistributedLockList is a list of DistributedLocks.
// +kubebuilder:object:root=true
type DistributedLockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the locks.
	Items []DistributedLock `json:"items"`
}
