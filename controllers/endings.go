package controllers

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// endingKept is how long it is remembered how a Job ended that is gone.
const endingKept = 10 * time.Minute

// endings remember how Jobs ended that were deleted right after, as a history limit of 0 or a
// ttlSecondsAfterFinished does.
type endings struct {
	now func() time.Time
	mu  sync.Mutex // guards m
	m   map[types.UID]ending
}

type ending struct {
	succeeded bool
	at        time.Time
}

func newEndings(now func() time.Time) *endings { return &endings{now: now, m: map[types.UID]ending{}} }

// of tells how a Job that is gone ended, if it did.
func (e *endings) of(uid types.UID) (succeeded, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end, known := e.m[uid]
	return end.succeeded, known
}

// handler feeds the endings from an informer. A deletion that the watch missed proves nothing.
func (e *endings) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		job, ok := obj.(*batchv1.Job)
		if !ok || !finished(job) {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		now := e.now()
		for uid, old := range e.m {
			if now.Sub(old.at) > endingKept {
				delete(e.m, uid)
			}
		}
		e.m[job.UID] = ending{succeeded: jobCondition(job, batchv1.JobComplete), at: now}
	}}
}
