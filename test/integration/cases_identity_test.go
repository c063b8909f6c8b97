package integration

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// statefulSet creates a StatefulSet of one exclusive pod, which is NAME-0 in each of its lives.
func (s *side) statefulSet(name string) *appsv1.StatefulSet {
	s.w.t.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.w.ns, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: name,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: s.workload(name, "exclusive"),
		},
	}
	s.w.Expect(s.client.Create(s.w.t.Context(), set)).To(Succeed())
	return set
}

// another waits until a name belongs to another pod than before.
func (s *side) another(name string, than types.UID) *corev1.Pod {
	s.w.t.Helper()
	var found *corev1.Pod
	s.w.Eventually(func() bool {
		found = s.pod(name)
		return found != nil && found.UID != than && found.DeletionTimestamp == nil
	}, within, look).Should(BeTrue())
	return found
}

// C99: the order to stop a holder that lost its lock reaches the API server when its name belongs to the next pod already.
func TestTheNextPodOfANameIsNotStoppedForTheOneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api, via := w.east.through()
	w.east.conch(1, via)
	w.east.newLock("web")
	w.east.statefulSet("web")
	first := w.east.runs("web", 0)
	held := w.east.holds("web")

	ordered, late := make(chan struct{}), make(chan struct{})
	var once sync.Once
	api.Before(func(wr rig.Write) {
		if wr.Method == http.MethodDelete && wr.Resource == "pods" {
			once.Do(func() { close(ordered); <-late })
		}
	})
	w.Expect(w.redisClient().Set(t.Context(), w.keyOf("web"), "somebody else", time.Hour).Err()).To(Succeed())
	w.Eventually(ordered, within).Should(BeClosed())
	w.east.remove(first.Name)
	next := w.east.another(first.Name, first.UID)
	close(late)
	w.Consistently(func() types.UID {
		if p := w.east.pod(first.Name); p != nil && p.DeletionTimestamp == nil && gatedPod(*p) {
			return p.UID
		}
		return ""
	}, 3*time.Second, look).Should(Equal(next.UID), "the next one waits its turn, unharmed")
	w.Expect(w.redisClient().Del(t.Context(), w.keyOf("web")).Err()).To(Succeed())
	after := w.east.passesOn("web", held.Status.FencingToken)
	w.Expect(after.Status.Holder.UID).To(Equal(next.UID))
	ledger.Verdict(t, w.ledger)
}

// C101: lock and workload are made again under their names while conch is away, and Redis keeps the key of the dead pod for
// most of an hour. Nobody inherits it: the dead pod's key goes with the proof of its death, and the next one has a tenure of its own.
func TestAWorkloadThatWasMadeAgainDoesNotInheritTheDeadOnesTenure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })[0]
	hour := func(s *lockv1alpha1.DistributedLockSpec) { s.TTL, s.FenceGrace = seconds(3000), seconds(3) }
	w.east.newLock("web", hour)
	set := w.east.statefulSet("web")
	dead := w.east.runs("web", 0)
	held := w.east.holds("web")
	first.Kill()
	w.Expect(w.east.client.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	w.east.gone(dead.Name)
	w.Eventually(func() bool {
		return client.IgnoreNotFound(w.east.client.Get(t.Context(), client.ObjectKeyFromObject(set), set)) == nil && set.UID != "" && w.east.pod(dead.Name) == nil
	}, within, look).Should(BeTrue())
	w.Expect(w.east.client.Delete(t.Context(), held)).To(Succeed())
	w.Eventually(func() *lockv1alpha1.DistributedLock { return w.east.lock("web") }, within, look).Should(BeNil())
	w.east.newLock("web", hour)
	w.Eventually(func() error {
		again := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}, Spec: set.Spec}
		return w.east.client.Create(t.Context(), again)
	}, within, look).Should(Succeed())
	next := w.east.another(dead.Name, dead.UID)
	w.Expect(w.redisClient().Get(t.Context(), w.keyOf("web")).Val()).To(Equal(held.Status.Token))

	w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
	after := w.east.passesOn("web", held.Status.FencingToken)
	w.Expect(after.Status.Holder.UID).To(Equal(next.UID))
	w.Expect(after.Status.Holder.Identity).NotTo(Equal(held.Status.Holder.Identity))
	ledger.Verdict(t, w.ledger)
}

// C103: a pod of a Job is replaced only after its death, also where the Job was made to replace it at once. To the
// ledger all pods of a Job are one tenure, so that they are compared here.
func TestAPodOfAJobIsReplacedOnlyAfterItsDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("work")
	w.east.job("work", "work", onPod(flags("-ignore-term"), grace(5)), func(j *batchv1.JobSpec) {
		j.BackoffLimit, j.PodReplacementPolicy = ptr.To[int32](3), ptr.To(batchv1.TerminatingOrFailed)
	})
	first := w.east.jobRuns("work", "work", 1)[0]
	held := w.east.holds("work")
	w.east.remove(first.Name)
	w.Eventually(func() int { return w.starts("work") }, within, look).Should(Equal(2))
	w.Expect(w.east.pod(first.Name)).To(Or(BeNil(), HaveField("Status.Phase", corev1.PodFailed)))
	w.Expect(w.east.lock("work").Status.FencingToken).To(Equal(held.Status.FencingToken), "the Job as a whole holds")
	entries, err := w.ledger.Entries()
	w.Expect(err).NotTo(HaveOccurred())
	pods := ledger.Intervals(entries)
	w.Expect(pods[0].To).To(BeNumerically("<", pods[1].At))
	ledger.Verdict(t, w.ledger)
}
