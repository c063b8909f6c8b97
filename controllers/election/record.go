package election

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// AnnotationDeciders names the newest deciders of this cluster on its Lease, the last one first.
	// It outlives a release, so that a new decider can tell its predecessors from strangers.
	AnnotationDeciders = "conch.dev/deciders"

	deciderSeparator = ","
	maxDeciders      = 8

	// releasedSeconds is what a Lease says that was given back, for readers that know only durations.
	releasedSeconds = 1
)

// record is what a Lease says.
type record struct {
	holder      string
	duration    time.Duration
	transitions int64
	deciders    []string
}

func recordOf(l *coordinationv1.Lease) record {
	if l == nil {
		return record{}
	}
	r := record{
		holder:      ptr.Deref(l.Spec.HolderIdentity, ""),
		duration:    time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second,
		transitions: int64(ptr.Deref(l.Spec.LeaseTransitions, 0)),
	}
	if list := l.Annotations[AnnotationDeciders]; list != "" {
		r.deciders = strings.Split(list, deciderSeparator)
	}
	return r
}

// held returns a copy of a Lease in which identity holds it, as of now. A new term begins where it
// did not hold it before; floor is the highest number of a term that is known.
func held(l *coordinationv1.Lease, identity string, duration time.Duration, now time.Time, floor int64) *coordinationv1.Lease {
	out, was := l.DeepCopy(), recordOf(l)
	out.Spec.HolderIdentity = ptr.To(identity)
	out.Spec.LeaseDurationSeconds = ptr.To(int32(duration / time.Second))
	out.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	if was.holder == identity {
		return out
	}
	out.Spec.AcquireTime = out.Spec.RenewTime
	out.Spec.LeaseTransitions = ptr.To(int32(max(was.transitions, floor) + 1))
	newest := slices.DeleteFunc(was.deciders, func(d string) bool { return d == identity })
	newest = slices.Insert(newest, 0, identity)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[AnnotationDeciders] = strings.Join(newest[:min(len(newest), maxDeciders)], deciderSeparator)
	return out
}

// released returns a copy of a Lease that anybody may take at once.
func released(l *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	out := l.DeepCopy()
	out.Spec.HolderIdentity = ptr.To("")
	out.Spec.LeaseDurationSeconds = ptr.To[int32](releasedSeconds)
	out.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	return out
}

// observation is what a contender knows about the holder: the record, and since when it is
// unchanged. Both are its own, so that it needs no clock but its own.
type observation struct {
	version string
	record  record
	since   time.Time
}

// see takes in what was read at now. A Lease that vanished leaves the observation as it is: its
// holder does not know yet.
func (o observation) see(l *coordinationv1.Lease, now time.Time) observation {
	if l == nil || (l.ResourceVersion == o.version && !o.since.IsZero()) {
		return o
	}
	return observation{version: l.ResourceVersion, record: recordOf(l), since: now}
}

// freeAt is when a contender may take the Lease. The record's own duration counts, since its holder
// may have been configured otherwise; atLeast guards against records that state none or too little.
func (o observation) freeAt(atLeast time.Duration) time.Time {
	if o.record.holder == "" {
		return o.since
	}
	return o.since.Add(max(o.record.duration, atLeast))
}
