package controllers

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/controllers/plan"
)

// note is an Event about a lock, sent once the status that it tells of is written.
type note struct {
	kind, reason, action, text string
}

// notesOf are the Events that a change of status is worth: transitions only.
func notesOf(before plan.Status, after plan.Status, dec plan.Decision, cluster string, waited time.Duration) []note {
	was, is := before.Ours(cluster), after.Ours(cluster)
	switch {
	case !was && is && dec.Reason == plan.Adopted:
		return []note{normal("LockAdopted", "Adopt", fmt.Sprintf("%s holds the lock with fencing token %d; its record was found", after.Holder.Name, after.FencingToken))}
	case !was && is:
		return []note{normal("LockAcquired", "Acquire", fmt.Sprintf("acquired for %s with fencing token %d", after.Holder.Name, after.FencingToken))}
	case was && !is:
		return []note{normal("LockReleased", "Release", fmt.Sprintf("%s no longer holds the lock (%s), fencing token was %d", before.Holder.Name, before.Ending, before.FencingToken))}
	case was && after.FencingToken > before.FencingToken:
		return []note{warning("TenureBroken", "Acquire", fmt.Sprintf(
			"the key was gone from the store; it was taken again for %s, fencing token %d became %d", after.Holder.Name, before.FencingToken, after.FencingToken))}
	case before.StartedAt.IsZero() && !after.StartedAt.IsZero():
		return []note{normal("HolderStarted", "Start", fmt.Sprintf("%s may work with fencing token %d, %s after it was created", after.Holder.Name, after.FencingToken, waited))}
	case before.State != plan.Fencing && after.State == plan.Fencing:
		return []note{fencing(after, dec)}
	case after.State == plan.Releasing && before.State != plan.Releasing && after.Unclean:
		return []note{warning("FenceUnconfirmed", "Release", dec.Message)}
	}
	return nil
}

// fencing warns where something went wrong, and merely tells of an ending in good order.
func fencing(st plan.Status, dec plan.Decision) note {
	text := fmt.Sprintf("ending the tenure of %s: %s", st.Holder.Name, dec.Message)
	switch st.Ending {
	case plan.LockLost, plan.BackendLost, plan.StartDeadline, plan.GateBypassed:
		return warning(string(st.Ending), "Fence", text)
	}
	return normal(string(st.Ending), "HandOver", text)
}

func normal(reason, action, text string) note {
	return note{kind: corev1.EventTypeNormal, reason: reason, action: action, text: text}
}

func warning(reason, action, text string) note {
	return note{kind: corev1.EventTypeWarning, reason: reason, action: action, text: text}
}

// object is what Events about a candidate are attached to, nil if it is not known: a pod, a Job, or a
// reference to a workload.
func (p *pass) object(uid string) runtime.Object {
	if pod := p.pods[uid]; pod != nil {
		return pod
	}
	if job := p.jobs[uid]; job != nil {
		return job
	}
	if i := p.indexOf(uid); i >= 0 && isWorkload(p.candidates[i].Kind) {
		c := p.candidates[i]
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: types.UID(uid)}}
		o.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(c.Kind))
		return o
	}
	return nil
}

// send emits notes about the lock, or about the holder where the lock is gone.
func (p *pass) send(notes []note) {
	var about runtime.Object
	if p.lock != nil {
		about = p.lock
	}
	var related runtime.Object
	if o := p.object(p.status.Holder.UID); o != nil {
		related = o
	}
	if about == nil {
		about, related = related, nil
	}
	if about == nil {
		return
	}
	for _, n := range notes {
		p.r.opts.Recorder.Eventf(about, related, n.kind, n.reason, n.action, "%s", n.text)
	}
}
