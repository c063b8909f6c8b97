package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/pkg/lock"
)

// addProbes registers liveness and readiness. Liveness asks for nothing but the process: a restart
// mends neither Redis nor the API server, and costs the grants their watch.
func (p *process) addProbes() error {
	synced := &atomic.Bool{}
	err := p.manager.Add(manager.RunnableFunc(func(context.Context) error {
		synced.Store(true) // the manager starts this once the caches are synced
		return nil
	}))
	if err != nil {
		return fmt.Errorf("add the readiness of the caches: %w", err)
	}
	a := &adoption{process: p, synced: synced}
	for name, check := range map[string]healthz.Checker{
		"caches":   p.cachesSynced(synced),
		"locks":    a.check,
		"renewals": func(*http.Request) error { return p.stores.roundDone() },
		"backends": func(*http.Request) error { return p.stores.doctor.Ready() },
	} {
		if err := p.manager.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("add readiness check %s: %w", name, err)
		}
	}
	if err := p.manager.AddHealthzCheck("process", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness check: %w", err)
	}
	return nil
}

func (p *process) cachesSynced(synced *atomic.Bool) healthz.Checker {
	return func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the caches are not synced")
		}
		return nil
	}
}

// adoption is ready once every lock that this cluster held at the start is in the hands of a keeper.
// It stays so: what comes later is the controllers' daily business.
type adoption struct {
	process *process
	synced  *atomic.Bool
	done    atomic.Bool
}

func (a *adoption) check(r *http.Request) error {
	if a.done.Load() {
		return nil
	}
	if !a.synced.Load() {
		return errors.New("the caches are not synced")
	}
	var list lockv1alpha1.DistributedLockList
	if err := a.process.manager.GetClient().List(r.Context(), &list); err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	kept := a.process.stores.tokens()
	for i := range list.Items {
		l := &list.Items[i]
		if a.ours(l) && !kept[lock.Token(l.Status.Token)] {
			return fmt.Errorf("lock %s is not renewed yet", client.ObjectKeyFromObject(l))
		}
	}
	a.done.Store(true)
	return nil
}

// ours reports whether this cluster holds a lock, in a backend that it knows.
func (a *adoption) ours(l *lockv1alpha1.DistributedLock) bool {
	_, known := a.process.stores.backends[firstOf(l.Spec.Backend, "default")]
	return known && l.Status.State == lockv1alpha1.StateHeld && l.Status.Holder != nil && l.Status.Holder.Cluster == a.process.cluster
}
