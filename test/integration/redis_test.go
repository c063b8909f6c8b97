package integration

import (
	. "github.com/onsi/gomega"
	"github.com/redis/go-redis/v9"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// redisClient reaches the world's Redis past conch.
func (w *world) redisClient() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: w.redis.Addr()})
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// redisKey is the key of a lock as it stands in Redis.
func (w *world) redisKey(s *side, lock string) string {
	w.t.Helper()
	return "conch:{" + s.lock(lock).Status.Effective.Key + "}"
}

func (s *side) annotate(lock, key, value string) {
	s.w.t.Helper()
	l := s.lock(lock)
	base := l.DeepCopy()
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[key] = value
	s.w.Expect(s.client.Patch(s.w.t.Context(), l, client.MergeFrom(base))).To(Succeed())
}

// change changes a lock's spec.
func (s *side) change(lock string, mod func(*lockv1alpha1.DistributedLockSpec)) {
	s.w.t.Helper()
	l := s.lock(lock)
	base := l.DeepCopy()
	mod(&l.Spec)
	s.w.Expect(s.client.Patch(s.w.t.Context(), l, client.MergeFrom(base))).To(Succeed())
}
