package controllers

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// advice is what the owner of one object should know about it. It is told in an Event, once for as long
// as it is true.
type advice struct {
	about          runtime.Object
	uid            types.UID
	reason, action string
	text           string
}

// advise tells what stands in the way of a lock or of its pods and is nobody's transition.
func (p *pass) advise() {
	told := map[string]struct{}{}
	for _, a := range slices.Concat(p.podAdvice(), p.orderAdvice(), p.missedAdvice()) {
		key := string(a.uid) + "/" + a.reason + "/" + a.text
		told[key] = struct{}{}
		if _, before := p.mem.told[key]; !before {
			p.r.opts.Recorder.Eventf(a.about, nil, corev1.EventTypeWarning, a.reason, a.action, "%s", a.text)
		}
	}
	p.mem.told = told
}

// podAdvice is for pods that wait for nothing, and for those that work without the lock's leave.
func (p *pass) podAdvice() []advice {
	var out []advice
	for _, pod := range p.mistaken {
		out = append(out, advice{pod, pod.UID, "UnknownMark", "Ignore", fmt.Sprintf(
			"label %s must be leader, exclusive or active-passive, not %q: conch leaves this pod alone",
			lockv1alpha1.LabelSingleton, pod.Labels[lockv1alpha1.LabelSingleton])})
	}
	for _, c := range p.candidates {
		o, uid := p.object(c.UID), types.UID(c.UID)
		switch {
		case o == nil:
		case p.lock != nil && p.terms.refusal == lockv1alpha1.ReasonOwnerGone: // over in a moment
		case p.lock != nil && p.terms.refusal != "" && c.Eligible(p.now):
			out = append(out, advice{o, uid, "LockRefused", "Wait", fmt.Sprintf(
				"this %s waits for DistributedLock %s, which is refused (%s): %s", noun(c), p.name.Name, p.terms.refusal, p.terms.lock.Refused)})
		case c.Overridden && c.Mode != plan.Leader && c.Active():
			out = append(out, advice{o, uid, "GateOverridden", "Override", "let past its gate by hand, reason given: " + p.override(c)})
		case c.Kind == plan.KindJob && c.Bypassed() && !p.holds(c):
			out = append(out, advice{o, uid, "GateBypassed", "Suspend",
				"resumed without holding the lock: conch suspends it; annotation conch.dev/override gives an operator the right to resume it"})
		}
	}
	return out
}

// override is the reason that an operator gave, on the candidate or one of its pods.
func (p *pass) override(c plan.Candidate) string {
	if job := p.jobs[c.UID]; job != nil {
		return job.Annotations[lockv1alpha1.AnnotationOverride]
	}
	for _, uid := range append([]string{c.UID}, uids(c.Members)...) {
		if pod := p.pods[uid]; pod != nil && pod.Annotations[lockv1alpha1.AnnotationOverride] != "" {
			return pod.Annotations[lockv1alpha1.AnnotationOverride]
		}
	}
	return ""
}

func uids(members []plan.Member) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.UID
	}
	return out
}

// holds reports whether a candidate is the holder and bears its record, or was seen to have started.
func (p *pass) holds(c plan.Candidate) bool {
	return p.isHolder(types.UID(c.UID)) && (!p.status.StartedAt.IsZero() || c.Record == p.status.Holder.Owner)
}

// orderAdvice is for an operator's order that names a tenure which is not the present one.
func (p *pass) orderAdvice() []advice {
	if p.lock == nil {
		return nil
	}
	var out []advice
	for _, name := range []string{lockv1alpha1.AnnotationRelease, lockv1alpha1.AnnotationConfirmDead} {
		value, given := p.lock.Annotations[name]
		if !given || p.knowsTenure(fencingToken(value)) {
			continue
		}
		out = append(out, advice{p.lock, p.lock.UID, "OrderIgnored", "Ignore", fmt.Sprintf(
			"annotation %s names fencing token %q, which is not the present one: write %d", name, value, p.status.FencingToken)})
	}
	return out
}

// knowsTenure reports whether a fencing token is of the present tenure or of a recent one, whose order
// has been carried out.
func (p *pass) knowsTenure(token int64) bool {
	if token != 0 && token == p.status.FencingToken {
		return true
	}
	for _, t := range p.lock.Status.History {
		if token != 0 && t.FencingToken == token {
			return true
		}
	}
	return false
}
