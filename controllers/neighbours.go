package controllers

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// namedElsewhere reports whether another lock of this cluster names the owner as its holder: two
// locks with one key.
func (p *pass) namedElsewhere(owner string) bool {
	var list lockv1alpha1.DistributedLockList
	if err := p.r.opts.Client.List(p.ctx, &list, client.MatchingFields{ownerField: owner}); err != nil {
		return true // cannot tell: the owner is left alone
	}
	for i := range list.Items {
		if client.ObjectKeyFromObject(&list.Items[i]) != p.name {
			return true
		}
	}
	return false
}

// alive reports whether what is behind an owner of this cluster still exists, by the API server itself:
// a pod, a Job or a workload, or what is left of their pods. When that cannot be told, the owner is taken
// to be alive.
func (p *pass) alive(h plan.Holder) bool {
	var o client.Object = &corev1.Pod{}
	switch h.Kind {
	case plan.KindJob:
		o = &batchv1.Job{}
	case plan.KindDeployment:
		o = &appsv1.Deployment{}
	case plan.KindStatefulSet:
		o = &appsv1.StatefulSet{}
	}
	err := p.r.opts.APIReader.Get(p.ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, o)
	if client.IgnoreNotFound(err) != nil || err == nil && string(o.GetUID()) == h.UID {
		return true
	}
	if h.Kind != plan.KindJob && !isWorkload(h.Kind) {
		return false
	}
	pods, err := p.listMembers(p.ctx, &house{kind: h.Kind, name: h.Name, uid: types.UID(h.UID)})
	return err != nil || anyUnfinished(pods)
}
