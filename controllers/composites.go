package controllers

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
	"github.com/conch-dev/conch/pkg/lock"
)

// house is a Job or an active-passive workload, and its pods as far as they are known.
type house struct {
	kind, name string
	uid        types.UID
	pods       []*corev1.Pod
	// revision is the newest among the pods; from is the lineage of that one.
	revision int64
	from     lineage
	// vouched is true if a pod's owners lead to the workload, which therefore exists.
	vouched bool
}

// houses are found by the UID of the Job or workload.
type houses map[types.UID]*house

func (h houses) add(kind, name string, uid types.UID, pod *corev1.Pod) *house {
	one, known := h[uid]
	if !known {
		one = &house{kind: kind, name: name, uid: uid}
		h[uid] = one
	}
	one.pods = append(one.pods, pod)
	return one
}

// jobOf is the Job that controls a pod, nil if none does.
func jobOf(pod *corev1.Pod) *metav1.OwnerReference {
	if o := metav1.GetControllerOf(pod); o != nil && o.Kind == plan.KindJob {
		return o
	}
	return nil
}

// house takes a pod in that is a member of something larger, and reports whether it is.
func (p *pass) house(pod *corev1.Pod, from lineage) bool {
	if job := jobOf(pod); job != nil {
		p.houses.add(plan.KindJob, job.Name, job.UID, pod)
		return true
	}
	if pod.Labels[lockv1alpha1.LabelSingleton] != lockv1alpha1.SingletonActivePassive {
		return false
	}
	if from.uid != "" {
		h := p.houses.add(from.kind, from.name, from.uid, pod)
		h.vouched = h.vouched || pod.DeletionTimestamp == nil
		if from.revision >= h.revision {
			h.revision, h.from = from.revision, from
		}
		return true
	}
	// Its workload is gone or has let go of it. Its record tells which tenure it is of; one that still
	// waits, and was made by a controller, waits for nothing.
	if o, ok := recordedOwner(pod); ok && isWorkload(o.Kind) {
		p.houses.add(o.Kind, o.Name, types.UID(o.UID), pod)
		return true
	}
	return gated(pod) && metav1.GetControllerOf(pod) != nil
}

func isWorkload(kind string) bool { return kind == plan.KindDeployment || kind == plan.KindStatefulSet }

// readJobs makes candidates of the marked Jobs that name this lock, and of those whose pods do.
func (p *pass) readJobs(ctx context.Context) error {
	var list batchv1.JobList
	if err := p.r.opts.Client.List(ctx, &list, client.InNamespace(p.name.Namespace), client.MatchingFields{lockField: p.name.Name}); err != nil {
		return fmt.Errorf("list the Jobs of lock %s: %w", p.name, err)
	}
	for i := range list.Items {
		if err := p.addJob(ctx, &list.Items[i], true); err != nil {
			return err
		}
	}
	for uid, h := range p.houses {
		if h.kind != plan.KindJob || p.indexOf(string(uid)) >= 0 || !anyUnfinished(h.pods) {
			continue
		}
		if err := p.findJob(ctx, h.name, uid); err != nil {
			return err
		}
	}
	return nil
}

// findJob looks a Job up at the API server. If it is gone, what is left of it is its pods.
func (p *pass) findJob(ctx context.Context, name string, uid types.UID) error {
	var job batchv1.Job
	err := p.r.opts.APIReader.Get(ctx, client.ObjectKey{Namespace: p.name.Namespace, Name: name}, &job)
	switch {
	case err == nil && job.UID == uid:
		firstSeen(p.mem.vanished, uid, false, p.now)
		return p.addJob(ctx, &job, job.Labels[lockv1alpha1.LabelSingleton] != "")
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("look for Job %s: %w", name, err)
	}
	c := plan.Candidate{
		Kind: plan.KindJob, Namespace: p.name.Namespace, Name: name, UID: string(uid), Mode: plan.Exclusive,
		Group: string(uid), Marked: true, Quiet: true,
	}
	c.Body.VanishedAt = firstSeen(p.mem.vanished, uid, true, p.now)
	return p.addComposite(ctx, c)
}

// addJob translates a Job.
func (p *pass) addJob(ctx context.Context, job *batchv1.Job, marked bool) error {
	ann := job.Annotations
	c := plan.Candidate{
		Kind: plan.KindJob, Namespace: job.Namespace, Name: job.Name, UID: string(job.UID),
		Mode: plan.Exclusive, Created: job.CreationTimestamp.Time, Group: string(job.UID),
		Record: ann[lockv1alpha1.AnnotationHolderIdentity], RecordToken: fencingToken(ann[lockv1alpha1.AnnotationFencingToken]),
		Ended: fencingToken(ann[lockv1alpha1.AnnotationEnded]), Marked: marked, Overridden: ann[lockv1alpha1.AnnotationOverride] != "",
		Body: plan.Body{
			Exists: true, Known: true, Deleting: job.DeletionTimestamp != nil, Terminal: finished(job), Grace: podGrace(job.Spec.Template.Spec),
		},
	}
	judgeSuspension(job, &c)
	p.jobs[c.UID] = job
	return p.addComposite(ctx, c)
}

// readWorkloads makes candidates of the active-passive workloads behind the pods of this lock.
func (p *pass) readWorkloads(ctx context.Context) error {
	for uid, h := range p.houses {
		if h.kind == plan.KindJob {
			continue
		}
		p.lineages[string(uid)] = h.from
		if err := p.addWorkload(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) addWorkload(ctx context.Context, h *house) error {
	c := plan.Candidate{
		Kind: h.kind, Namespace: p.name.Namespace, Name: h.name, UID: string(h.uid), Mode: plan.ActivePassive,
		Group: string(h.uid), Revision: h.revision, Marked: true, Quiet: true,
		Body: plan.Body{Exists: true, Known: true, Grace: defaultGrace},
	}
	for i, pod := range h.pods {
		if t := pod.CreationTimestamp.Time; i == 0 || t.Before(c.Created) {
			c.Created = t
		}
		c.Overridden = c.Overridden || pod.Annotations[lockv1alpha1.AnnotationOverride] != ""
		c.Body.Grace = graceOf(pod)
	}
	if p.isHolder(h.uid) && !h.vouched {
		if err := p.lookUpWorkload(ctx, &c); err != nil {
			return err
		}
	}
	return p.addComposite(ctx, c)
}

// addComposite completes a candidate with its pods and what follows from them.
func (p *pass) addComposite(ctx context.Context, c plan.Candidate) error {
	if err := p.addMembers(ctx, &c); err != nil {
		return err
	}
	if c.Kind != plan.KindJob || !c.Body.Exists {
		p.recordOfMembers(&c)
	}
	if c.RecordedToken = ""; c.Record != "" {
		c.RecordedToken = fmt.Sprintf("%s#%d", c.Record, c.RecordToken)
	}
	c.Ready = p.anyReady(c.Members)
	c.ReadySince = firstSeen(p.mem.unready, types.UID(c.UID), !c.Ready, p.now)
	stood := p.mem.backOff[kindred(c)]
	c.BackOffUntil, c.GaveUp = stood.until, stood.gaveUp
	p.candidates = append(p.candidates, c)
	return nil
}

// recordOfMembers takes the record of a candidate that bears none itself from its pods: they have it
// from the Job's template, or from the patch that let them go.
func (p *pass) recordOfMembers(c *plan.Candidate) {
	c.Gated = true
	for _, m := range c.Members {
		c.Gated = c.Gated && m.Gated
		if c.Body.Grace == 0 {
			c.Body.Grace = m.Body.Grace
		}
		if !m.Gated && m.RecordToken > c.RecordToken && m.Ended < m.RecordToken {
			c.Record, c.RecordToken = m.Record, m.RecordToken
		}
	}
}

// missingComposite looks for a Job or workload that holds and that the cache does not show.
func (p *pass) missingComposite(ctx context.Context) error {
	h := p.status.Holder
	if h.Kind == plan.KindJob {
		return p.findJob(ctx, h.Name, types.UID(h.UID))
	}
	return p.addWorkload(ctx, &house{kind: h.Kind, name: h.Name, uid: types.UID(h.UID)})
}

func (p *pass) isHolder(uid types.UID) bool { return p.ours() && p.status.Holder.UID == string(uid) }

func recordedOwner(pod *corev1.Pod) (plan.Holder, bool) {
	return parseOwner(lock.Owner(pod.Annotations[lockv1alpha1.AnnotationHolderIdentity]))
}
