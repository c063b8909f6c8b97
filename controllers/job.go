package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

func finished(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) || jobCondition(job, batchv1.JobFailed)
}

func jobCondition(job *batchv1.Job, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// judgeSuspension reads off a Job what its controller has made of spec.suspend so far. A Job has no
// observedGeneration: the condition is the only word that the controller gives, so one from before the
// last change has to go before it can be relied on (Reset).
func judgeSuspension(job *batchv1.Job, c *plan.Candidate) {
	c.Gated = ptr.Deref(job.Spec.Suspend, false)
	noted := jobCondition(job, batchv1.JobSuspended)
	counted := job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0
	begun := job.Status.StartTime != nil
	c.Quiet = c.Body.Terminal || c.Body.Deleting || c.Gated && noted
	c.Busy = c.Gated && (counted || begun && !noted)
	// From 1.36 on the controller clears the start time itself; before, a Job's template stays shut until
	// somebody does.
	c.Stale = !c.Gated && noted || c.Gated && noted && begun && !counted
}

// podGrace is how long the pods of a template get to stop.
func podGrace(spec corev1.PodSpec) time.Duration {
	return graceOf(&corev1.Pod{Spec: spec})
}

// jobPatch is a merge patch of a Job, refused if that is not the one, or not in the version, that the
// decision was based on.
func (p *pass) jobPatch(job *batchv1.Job, st plan.Status, a plan.Action) map[string]any {
	meta := map[string]any{"uid": job.UID, "resourceVersion": job.ResourceVersion}
	patch := map[string]any{"metadata": meta}
	switch a.Kind {
	case plan.Start:
		meta["annotations"] = p.record(st)
		onPods := p.record(st)
		onPods[lockv1alpha1.AnnotationLock] = p.name.Name
		patch["spec"] = map[string]any{
			"suspend": false,
			"template": map[string]any{"metadata": map[string]any{
				"annotations": onPods,
				"labels":      map[string]any{lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonExclusive},
			}},
		}
	case plan.Record:
		meta["annotations"] = p.record(st)
	case plan.Spoil:
		meta["annotations"] = map[string]any{lockv1alpha1.AnnotationEnded: fmt.Sprint(st.FencingToken)}
	case plan.Suspend:
		patch["spec"] = map[string]any{"suspend": true}
	case plan.Reset:
		patch["status"] = resetStatus(job)
	}
	return patch
}

// resetStatus takes out of a Job's status what is from before its last change.
func resetStatus(job *batchv1.Job) map[string]any {
	if ptr.Deref(job.Spec.Suspend, false) {
		return map[string]any{"startTime": nil}
	}
	kept := slices.DeleteFunc(slices.Clone(job.Status.Conditions), func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobSuspended })
	if kept == nil {
		kept = []batchv1.JobCondition{}
	}
	return map[string]any{"conditions": kept}
}

// patchJob carries out an effect on a Job.
func (p *pass) patchJob(ctx context.Context, job *batchv1.Job, st plan.Status, a plan.Action) error {
	body, err := json.Marshal(p.jobPatch(job, st, a))
	if err != nil {
		return fmt.Errorf("%s Job %s: %w", a.Kind, job.Name, err)
	}
	raw := client.RawPatch(types.MergePatchType, body)
	if a.Kind == plan.Reset {
		err = p.r.opts.Client.Status().Patch(ctx, job.DeepCopy(), raw)
	} else {
		err = p.r.opts.Client.Patch(ctx, job.DeepCopy(), raw)
	}
	if err != nil {
		return fmt.Errorf("%s Job %s: %w", a.Kind, job.Name, err)
	}
	return nil
}
