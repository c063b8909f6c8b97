package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// lookUpWorkload asks the API server about a workload none of whose pods stands: whether it exists, and
// whether it asks for marked pods. Between two revisions it may have none for a moment.
func (p *pass) lookUpWorkload(ctx context.Context, c *plan.Candidate) error {
	meta, replicas, template, err := p.readWorkload(ctx, c.Kind, c.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(meta.UID) != c.UID:
		c.Body.Exists = false
		return nil
	case err != nil:
		return fmt.Errorf("look for %s %s: %w", c.Kind, c.Name, err)
	}
	c.Body.Deleting = meta.DeletionTimestamp != nil
	c.Done = replicas == 0 || template.Labels[lockv1alpha1.LabelSingleton] != lockv1alpha1.SingletonActivePassive
	return nil
}

func (p *pass) readWorkload(ctx context.Context, kind, name string) (metav1.ObjectMeta, int32, corev1.PodTemplateSpec, error) {
	key := client.ObjectKey{Namespace: p.name.Namespace, Name: name}
	if kind == plan.KindStatefulSet {
		var s appsv1.StatefulSet
		err := p.r.opts.APIReader.Get(ctx, key, &s)
		return s.ObjectMeta, ptr.Deref(s.Spec.Replicas, 1), s.Spec.Template, err
	}
	var d appsv1.Deployment
	err := p.r.opts.APIReader.Get(ctx, key, &d)
	return d.ObjectMeta, ptr.Deref(d.Spec.Replicas, 1), d.Spec.Template, err
}
