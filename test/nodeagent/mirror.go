package nodeagent

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// object is a Kubernetes object of any kind.
type object interface {
	metav1.Object
	runtime.Object
}

// mirror keeps a copy of the objects of one kind and tells of each change, in the order of the watch and on the watch's goroutine. It is
// an informer without the queue, and with a back-off of its own: after an API server was away an informer may wait for a minute.
type mirror[T object] struct {
	cache.Indexer
	source *cache.ListWatch
	kind   T
	onSet  func(T)
	onGone func(T)

	once   sync.Once
	filled chan struct{} // closed after the first list
}

func newMirror[T object](kind T, client cache.Getter, resource, namespace, selector string) *mirror[T] {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	source := cache.NewFilteredListWatchFromClient(client, resource, namespace, func(o *metav1.ListOptions) { o.LabelSelector = selector })
	return &mirror[T]{Indexer: indexer, source: source, kind: kind, onSet: func(T) {}, onGone: func(T) {}, filled: make(chan struct{})}
}

// run follows the API until ctx ends.
func (m *mirror[T]) run(ctx context.Context) {
	backOff := &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 100, Cap: time.Second}
	cache.NewReflectorWithOptions(m.source, m.kind, m, cache.ReflectorOptions{Name: fmt.Sprintf("mirror of %T", m.kind), Backoff: backOff}).RunWithContext(ctx)
}

// Add implements cache.ReflectorStore.
func (m *mirror[T]) Add(obj any) error {
	err := m.Indexer.Add(obj)
	m.onSet(obj.(T))
	return err
}

// Update implements cache.ReflectorStore.
func (m *mirror[T]) Update(obj any) error { return m.Add(obj) }

// Delete implements cache.ReflectorStore.
func (m *mirror[T]) Delete(obj any) error {
	err := m.Indexer.Delete(obj)
	m.onGone(obj.(T))
	return err
}

// Replace implements cache.ReflectorStore. What vanished between two watches is told as gone; an object under an old name with another UID
// is another object.
func (m *mirror[T]) Replace(list []any, resourceVersion string) error {
	gone := map[types.UID]T{}
	for _, obj := range m.List() {
		gone[obj.(T).GetUID()] = obj.(T)
	}
	for _, obj := range list {
		delete(gone, obj.(T).GetUID())
	}
	err := m.Indexer.Replace(list, resourceVersion)
	for _, obj := range gone {
		m.onGone(obj)
	}
	for _, obj := range list {
		m.onSet(obj.(T))
	}
	m.once.Do(func() { close(m.filled) })
	return err
}
