package integration

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// stranded is a lock whose holder was deleted on a node that nobody hears of.
type stranded struct {
	*world
	holder corev1.Pod
	held   *lockv1alpha1.DistributedLock
	since  time.Time
}

func strand(t *testing.T, mods ...func(*lockv1alpha1.DistributedLockSpec)) stranded {
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs", mods...)
	w.east.exclusive("jobs", 2)
	s := stranded{world: w, holder: w.east.runs("jobs", 1), held: w.east.holds("jobs")}
	w.east.agent.Partition(s.holder.Spec.NodeName)
	s.since = time.Now()
	w.east.remove(s.holder.Name)
	return s
}

// reported waits until the lock says where an operator has to look.
func (s stranded) reported() {
	s.t.Helper()
	s.east.says("jobs", lockv1alpha1.ConditionReady, "False HolderUnreachable: "+s.holder.Name+" on node "+s.holder.Spec.NodeName)
}

// nobodyStarts makes sure that the holder of before stays the only one.
func (s stranded) nobodyStarts(during time.Duration) {
	s.t.Helper()
	s.Consistently(func() []any {
		l := s.east.lock("jobs")
		if l.Status.Holder == nil {
			return nil
		}
		return []any{l.Status.FencingToken, l.Status.Holder.UID, s.starts("jobs")}
	}, during, look).Should(Equal([]any{s.held.Status.FencingToken, s.holder.UID, 1}))
}

// powerOff makes true what is about to be stated of the node: its processes are dead.
func (s stranded) powerOff() {
	s.t.Helper()
	s.Expect(s.east.agent.PowerOff(s.t.Context(), s.holder.Spec.NodeName)).To(Succeed())
}

func (s stranded) deleteNode() {
	s.t.Helper()
	s.Expect(s.east.client.Delete(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.holder.Spec.NodeName}})).To(Succeed())
}

// C39: a holder whose node cannot be reached keeps its lock, whoever waits, until its node is gone.
func TestAHolderOnALostNodeKeepsItsLockUntilTheNodeIsDeleted(t *testing.T) {
	t.Parallel()
	s := strand(t)
	s.reported()
	s.nobodyStarts(2 * time.Second)
	s.powerOff()
	s.nobodyStarts(time.Second) // that the power is off is not known to anybody
	s.deleteNode()
	s.east.passesOn("jobs", s.held.Status.FencingToken)
	ledger.Verdict(t, s.ledger)
}

// C39: the key is lost as well. The holder is to be stopped, cannot be, and still nobody starts.
func TestAHolderOnALostNodeThatLosesItsKeyIsFencedAndNobodyStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs")
	w.east.exclusive("jobs", 2)
	s := stranded{world: w, holder: w.east.runs("jobs", 1), held: w.east.holds("jobs")}
	w.east.agent.Partition(s.holder.Spec.NodeName)
	w.Expect(w.redisClient().Set(t.Context(), w.keyOf("jobs"), "somebody else", time.Second).Err()).To(Succeed())
	w.east.says("jobs", lockv1alpha1.ConditionHeld, "False LockLost")
	w.east.says("jobs", lockv1alpha1.ConditionFenced, "False HolderUnreachable: "+s.holder.Name+" (node "+s.holder.Spec.NodeName+")")
	s.nobodyStarts(2 * time.Second)
	s.powerOff()
	s.deleteNode()
	w.east.passesOn("jobs", s.held.Status.FencingToken)
	ledger.Verdict(t, w.ledger)
}

// C39: the node comes back from a reboot, which ended whatever ran there.
func TestARebootOfItsNodeEndsALostHolder(t *testing.T) {
	t.Parallel()
	s := strand(t)
	s.reported()
	s.powerOff()
	s.east.agent.PowerOn(s.holder.Spec.NodeName)
	s.east.agent.Heal(s.holder.Spec.NodeName)
	s.east.passesOn("jobs", s.held.Status.FencingToken)
	ledger.Verdict(t, s.ledger)
}

// C39: an operator vouches for the death, for the present tenure and no other.
func TestAnOperatorConfirmsTheDeathOfThePresentTenureOnly(t *testing.T) {
	t.Parallel()
	s := strand(t)
	s.reported()
	s.east.annotate("jobs", lockv1alpha1.AnnotationConfirmDead, strconv.FormatInt(s.held.Status.FencingToken-1, 10))
	s.nobodyStarts(2 * time.Second)
	s.powerOff()
	s.east.annotate("jobs", lockv1alpha1.AnnotationConfirmDead, strconv.FormatInt(s.held.Status.FencingToken, 10))
	s.east.passesOn("jobs", s.held.Status.FencingToken)
	ledger.Verdict(t, s.ledger)
}

// C39: onUnreachable: Release gives the lock back after the pod's own grace, fenceGrace and takeoverDelay, and says that nobody
// has confirmed the end.
func TestReleaseOnUnreachableGivesALostHoldersLockBackUnclean(t *testing.T) {
	t.Parallel()
	s := strand(t, func(s *lockv1alpha1.DistributedLockSpec) { s.OnUnreachable = lockv1alpha1.UnreachableRelease })
	e := s.held.Status.Effective
	patience := 2*time.Second + e.FenceGrace.Duration + e.TakeoverDelay.Duration
	s.powerOff()
	s.nobodyStarts(time.Until(s.since.Add(patience - time.Second)))
	after := s.east.passesOn("jobs", s.held.Status.FencingToken)
	s.Expect(time.Since(s.since)).To(BeNumerically("<", patience+10*time.Second))
	s.Expect(after.Status.History[0].Reason).To(Equal(lockv1alpha1.ReasonHolderUnreachable))
	s.Eventually(s.east.events, within, look).Should(HaveKey("FenceUnconfirmed"))
	ledger.Verdict(t, s.ledger)
}

// C39: the node is noticed to be lost before the pod's own grace is over; the lock tells all the same.
func TestALongGraceDoesNotKeepALostNodeFromBeingReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("jobs", ttl(longTTL))
	w.east.exclusive("jobs", 1, grace(8))
	s := stranded{world: w, holder: w.east.runs("jobs", 0), held: w.east.holds("jobs")}
	w.east.agent.Partition(s.holder.Spec.NodeName)
	w.east.remove(s.holder.Name)
	w.Eventually(func() string { return w.east.reads("jobs", lockv1alpha1.ConditionReady) }, 15*time.Second, look).
		Should(HavePrefix("False HolderUnreachable: " + s.holder.Name + " on node " + s.holder.Spec.NodeName))
	ledger.Verdict(t, w.ledger)
}

// C39, for leaders: the node lifecycle controller evicts the leader of a lost node, and a standby is ready. It does not lead before
// the node is gone.
func TestALeaderOnALostNodeIsNotReplacedUntilTheNodeIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	oracle := w.east.watchLeaders()
	w.east.newLock("web")
	w.east.leader("web", 2, grace(1), func(p *corev1.PodTemplateSpec) {
		for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](1),
			})
		}
	})
	s := stranded{world: w, holder: w.east.leads("web"), held: w.east.holds("web")}
	w.east.agent.Partition(s.holder.Spec.NodeName)
	w.east.says("web", lockv1alpha1.ConditionReady, "False HolderUnreachable: "+s.holder.Name+" on node "+s.holder.Spec.NodeName)
	w.Consistently(func() int64 { return w.east.lock("web").Status.FencingToken }, 2*time.Second, look).Should(Equal(s.held.Status.FencingToken))
	s.powerOff()
	s.deleteNode()
	w.east.passesOn("web", s.held.Status.FencingToken)
	w.Expect(w.east.leads("web").UID).NotTo(Equal(s.holder.UID))
	ledger.Verdict(t, oracle)
}
