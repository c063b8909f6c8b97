package controllers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// urgent goes before everything else in the work queue: a grant, or the loss of one.
const urgent = 100

// keepIndex finds the lock that an entry of a keeper belongs to.
type keepIndex struct {
	mu sync.RWMutex // guards m
	m  map[keeper.ID]types.NamespacedName
}

func newKeepIndex() *keepIndex { return &keepIndex{m: map[keeper.ID]types.NamespacedName{}} }

func (x *keepIndex) set(id keeper.ID, name types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m[id] = name
}

func (x *keepIndex) unset(id keeper.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.m, id)
}

func (x *keepIndex) find(id keeper.ID) (types.NamespacedName, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	name, ok := x.m[id]
	return name, ok
}

// newsFrom is a source of reconcile requests: what a keeper has to tell about its entries.
func (r *Reconciler) newsFrom(news <-chan keeper.Event) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go r.forward(ctx, news, q)
		return nil
	})
}

// forward ends with ctx, the context of the controller that the source was started by.
func (r *Reconciler) forward(ctx context.Context, news <-chan keeper.Event, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-news:
			if !ok {
				return
			}
			if name, known := r.index.find(e.ID); known {
				enqueue(q, reconcile.Request{NamespacedName: name}, e.Urgent)
			}
		}
	}
}

func enqueue(q workqueue.TypedRateLimitingInterface[reconcile.Request], req reconcile.Request, first bool) {
	pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok || !first {
		q.Add(req)
		return
	}
	priority := urgent
	pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, req)
}

// everyLock is a source that wakes every lock whenever something that concerns them all changes:
// who decides, or whether this cluster contends.
func (r *Reconciler) everyLock(changed <-chan struct{}) source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed:
					r.wakeAll(ctx, q)
				}
			}
		}()
		return nil
	})
}

func (r *Reconciler) wakeAll(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, name := range r.allLocks(ctx) {
		q.Add(reconcile.Request{NamespacedName: name})
	}
}
