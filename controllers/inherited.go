package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// refuseInherited keeps a workload that was deleted and made again at once from the lock of the one before.
// The garbage collector is about to take that, and would end whatever had started under it.
func (p *pass) refuseInherited(ctx context.Context) error {
	if p.lock == nil || p.terms.refusal != "" || len(p.lock.OwnerReferences) != 1 {
		return nil
	}
	owner := p.lock.OwnerReferences[0]
	if !slices.ContainsFunc(p.candidates, func(c plan.Candidate) bool { return p.succeeds(c, owner) }) {
		return nil
	}
	// Pods of the workload before may outlive it, so that it takes a look at what there is now.
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	err := p.r.opts.APIReader.Get(ctx, client.ObjectKey{Namespace: p.name.Namespace, Name: owner.Name}, now)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for the owner of lock %s: %w", p.name, err)
	}
	if apierrors.IsNotFound(err) || now.UID != owner.UID {
		p.terms.refusal = lockv1alpha1.ReasonOwnerGone
		p.terms.lock.Refused = fmt.Sprintf("the %s that this lock belongs to is gone, and the garbage collector takes it; its successor gets one of its own", owner.Kind)
	}
	return nil
}

// succeeds reports whether a candidate's workload has the name of a lock's owner and is another one.
func (p *pass) succeeds(c plan.Candidate, owner metav1.OwnerReference) bool {
	kind, name, uid := c.Kind, c.Name, types.UID(c.UID)
	if from := p.lineages[c.UID]; from.uid != "" {
		kind, name, uid = from.kind, from.name, from.uid
	} else if job := p.jobs[c.UID]; job != nil {
		if o := metav1.GetControllerOf(job); o != nil {
			kind, name, uid = o.Kind, o.Name, o.UID
		}
	}
	return kind == owner.Kind && name == owner.Name && uid != owner.UID
}
