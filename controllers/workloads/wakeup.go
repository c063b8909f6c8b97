package workloads

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// everyWorkload is a source that wakes every marked workload when this replica begins to decide.
func (r *Reconciler) everyWorkload(changed <-chan struct{}) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					if r.opts.Election.Deciding() {
						r.wakeAll(ctx, q)
					}
				}
			}
		}()
		return nil
	})
}

func (r *Reconciler) wakeAll(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	wake := func(from client.Object, requests handler.MapFunc) {
		err := r.each(ctx, from, func(o client.Object) {
			for _, req := range requests(ctx, o) {
				q.Add(req)
			}
		})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing workloads", "kind", r.kind.name)
		}
	}
	wake(r.kind.watched(), func(ctx context.Context, o client.Object) []reconcile.Request {
		if !marked(o) {
			return nil
		}
		return r.itself(ctx, o)
	})
	if r.kind.made != nil {
		wake(r.kind.made(), r.maker)
		wake(&corev1.Pod{}, r.workloadOf)
	}
}

// each calls f for every object of a kind that the cache has.
func (r *Reconciler) each(ctx context.Context, of client.Object, f func(client.Object)) error {
	gvk, err := apiutil.GVKForObject(of, r.opts.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind: %w", err)
	}
	gvk.Kind += "List"
	var list client.ObjectList
	if _, partial := of.(*metav1.PartialObjectMetadata); partial {
		m := &metav1.PartialObjectMetadataList{}
		m.SetGroupVersionKind(gvk)
		list = m
	} else if list, err = listOf(r.opts.Client, gvk); err != nil {
		return err
	}
	if err := r.opts.Client.List(ctx, list); err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read a %s: %w", gvk.Kind, err)
	}
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			f(o)
		}
	}
	return nil
}

func listOf(c client.Client, gvk schema.GroupVersionKind) (client.ObjectList, error) {
	o, err := c.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", gvk.Kind, err)
	}
	list, ok := o.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s is no list", gvk.Kind)
	}
	return list, nil
}
