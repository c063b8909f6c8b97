package controllers

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// alive reports whether the pod behind an owner of this cluster still exists, by the API server
// itself. When that cannot be told, the owner is taken to be alive.
func (p *pass) alive(h plan.Holder) bool {
	var pod corev1.Pod
	err := p.r.opts.APIReader.Get(p.ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, &pod)
	if apierrors.IsNotFound(err) {
		return false
	}
	return err != nil || string(pod.UID) == h.UID
}
