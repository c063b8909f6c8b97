package election_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	errAway  = errors.New("connection refused")
)

// store is an API server that knows one Lease, with its optimistic concurrency.
type store struct {
	mu      sync.Mutex // guards the rest
	lease   *coordinationv1.Lease
	version int
	writes  int
	// away refuses everything; hung answers nothing; deaf does what it is told and answers nothing.
	away, hung, deaf bool
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *store) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// call runs f as the server would.
func (s *store) call(ctx context.Context, write bool, f func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	away, silent := s.away, s.hung || s.deaf && write
	var got *coordinationv1.Lease
	err := errAway
	if !away && !s.hung {
		got, err = f()
		got = got.DeepCopy()
	}
	s.mu.Unlock()
	if silent && !away {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return got, err
}

func (s *store) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return s.call(ctx, false, func() (*coordinationv1.Lease, error) {
		if s.lease == nil {
			return nil, apierrors.NewNotFound(resource, name)
		}
		return s.lease, nil
	})
}

func (s *store) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return s.call(ctx, true, func() (*coordinationv1.Lease, error) {
		if s.lease != nil {
			return nil, apierrors.NewAlreadyExists(resource, l.Name)
		}
		return s.put(l), nil
	})
}

func (s *store) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.call(ctx, true, func() (*coordinationv1.Lease, error) {
		if s.lease == nil {
			return nil, apierrors.NewNotFound(resource, l.Name)
		}
		if l.ResourceVersion != s.lease.ResourceVersion {
			return nil, apierrors.NewConflict(resource, l.Name, errors.New("changed meanwhile"))
		}
		return s.put(l), nil
	})
}

func (s *store) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.writes++
	s.lease = l.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	return s.lease
}

// link is one replica's own way to the API server, which can be cut.
type link struct {
	store *store
	cut   atomic.Bool
}

func (l *link) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if l.cut.Load() {
		return nil, errAway
	}
	return l.store.Get(ctx, name, o)
}

func (l *link) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if l.cut.Load() {
		return nil, errAway
	}
	return l.store.Create(ctx, lease, o)
}

func (l *link) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if l.cut.Load() {
		return nil, errAway
	}
	return l.store.Update(ctx, lease, o)
}
