package workloads

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// uses says which workloads of a kind want which lock, so that a lock which comes or goes wakes them.
type uses struct {
	mu     sync.Mutex // guards lockOf and usedBy
	lockOf map[types.NamespacedName]types.NamespacedName
	usedBy map[types.NamespacedName]map[types.NamespacedName]struct{}
}

func newUses() *uses {
	return &uses{lockOf: map[types.NamespacedName]types.NamespacedName{}, usedBy: map[types.NamespacedName]map[types.NamespacedName]struct{}{}}
}

func (u *uses) set(workload, lock types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unset(workload)
	u.lockOf[workload] = lock
	if u.usedBy[lock] == nil {
		u.usedBy[lock] = map[types.NamespacedName]struct{}{}
	}
	u.usedBy[lock][workload] = struct{}{}
}

func (u *uses) forget(workload types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unset(workload)
}

func (u *uses) unset(workload types.NamespacedName) {
	lock, known := u.lockOf[workload]
	if !known {
		return
	}
	delete(u.lockOf, workload)
	delete(u.usedBy[lock], workload)
	if len(u.usedBy[lock]) == 0 {
		delete(u.usedBy, lock)
	}
}

// of are the workloads that want a lock.
func (u *uses) of(lock types.NamespacedName) []types.NamespacedName {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []types.NamespacedName
	for name := range u.usedBy[lock] {
		out = append(out, name)
	}
	return out
}

// known reports whether a workload wants a lock.
func (u *uses) known(workload types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.lockOf[workload]
	return ok
}
