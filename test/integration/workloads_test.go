package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// nameless is a template that leaves the lock's name to conch.
func nameless(t *corev1.PodTemplateSpec) { delete(t.Annotations, lockv1alpha1.AnnotationLock) }

// told are the texts of the Events of one reason about one object.
func (s *side) told(kind, name, reason string) []string {
	var list eventsv1.EventList
	s.w.Expect(s.client.List(s.w.t.Context(), &list, client.InNamespace(s.w.ns))).To(Succeed())
	var out []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Kind == kind && e.Regarding.Name == name && e.Reason == reason {
			out = append(out, e.Note)
		}
	}
	return out
}

func TestAWorkloadThatNamesNoLockGetsItsOwnWithinASecondOfItsApply(t *testing.T) {
	t.Parallel()
	const runs = 10
	w := newWorld(t)
	w.east.conch(1)
	var took []time.Duration
	for i := range runs {
		name := "web-" + string(rune('a'+i))
		began := time.Now()
		w.east.deployment(name, 1, w.east.workload(name, "exclusive"), rolling, func(d *appsv1.DeploymentSpec) { nameless(&d.Template) })
		w.Eventually(func() string { return describe(w.east.lock("deployment-" + name)) }, within, 10*time.Millisecond).
			Should(HavePrefix("Held by " + w.east.id() + " started"))
		took = append(took, time.Since(began))
		l := w.east.lock("deployment-" + name)
		owner := metav1.GetControllerOf(l)
		w.Expect(owner).NotTo(BeNil())
		w.Expect(owner.Kind + "/" + owner.Name).To(Equal("Deployment/" + name))
		w.Expect(owner.BlockOwnerDeletion).To(BeNil())
		w.Expect(l.Spec.Key + l.Spec.RawKey).To(BeEmpty())
	}
	slices.Sort(took)
	t.Logf("from apply to a lifted gate: median %s, slowest %s of %d", took[runs/2], took[runs-1], runs)
	w.Expect(took[runs/2]).To(BeNumerically("<", 3*time.Second)) // a second on a machine of its own
	ledger.Verdict(t, w.ledger)
}

func TestALockIsMadeAnewForAWorkloadAndGoesWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.deployment("web", 1, w.east.workload("web", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) { nameless(&d.Template) })
	first := w.east.holds("deployment-web")
	w.Expect(w.east.client.Delete(t.Context(), first)).To(Succeed())
	w.Eventually(func() bool {
		l := w.east.lock("deployment-web")
		return l != nil && l.UID != first.UID
	}, within, look).Should(BeTrue())
	w.east.holds("deployment-web")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	w.Expect(w.east.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	w.Eventually(func() *lockv1alpha1.DistributedLock { return w.east.lock("deployment-web") }, within, look).Should(BeNil())
	ledger.Verdict(t, w.ledger)
}

// C111: what stands under the name that conch would use is no obstacle, and an Event says whose it is.
func TestALockOfThatNameIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("deployment-web", ttl(8))
	w.east.deployment("web", 1, w.east.workload("web", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) { nameless(&d.Template) })
	l := w.east.holds("deployment-web")
	w.Expect(l.OwnerReferences).To(BeEmpty())
	w.Expect(l.Spec.TTL.Duration).To(Equal(8 * time.Second))
	w.Eventually(func() []string { return w.east.told("Deployment", "web", "LockFound") }, within, look).Should(ConsistOf(ContainSubstring("belongs to nobody")))
	ledger.Verdict(t, w.ledger)
}

func TestANamedLockThatDoesNotExistIsToldOnceAndStartsNothingUntilItComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.deployment("web", 1, w.east.workload("shared", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) {
		d.Selector.MatchLabels = map[string]string{"app": "shared"}
	})
	w.Eventually(func() []string { return w.east.told("Deployment", "web", "LockNotFound") }, within, look).Should(ConsistOf(ContainSubstring(`"shared"`)))
	w.Eventually(func() map[string]int { return w.east.eventsOn("Pod") }, within, look).Should(HaveKey("LockNotFound"))
	w.Expect(w.east.lock("shared")).To(BeNil())
	w.Expect(w.east.lock("deployment-web")).To(BeNil())
	for _, p := range w.east.pods("shared") {
		w.Expect(p.Spec.SchedulingGates).NotTo(BeEmpty())
	}
	w.east.newLock("shared")
	w.east.holds("shared")
	w.Expect(w.east.told("Deployment", "web", "LockNotFound")).To(HaveLen(1))
	ledger.Verdict(t, w.ledger)
}

func TestTwoWorkloadsThatNameOneLockTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.east.newLock("shared")
	for _, name := range []string{"first", "second"} {
		tpl := w.east.workload("shared", "exclusive")
		tpl.Labels["part"] = name
		w.east.deployment(name, 1, tpl, rolling, func(d *appsv1.DeploymentSpec) {
			d.Selector.MatchLabels = map[string]string{"app": "shared", "part": name}
		})
	}
	holder := w.east.holds("shared").Status.Holder.Name
	first, _, _ := strings.Cut(holder, "-")
	w.Expect(w.east.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: first}})).To(Succeed())
	w.Eventually(func() string {
		l := w.east.lock("shared")
		if l == nil || l.Status.Holder == nil || l.Status.StartedAt == nil || strings.HasPrefix(l.Status.Holder.Name, first+"-") {
			return describe(l)
		}
		return "other"
	}, within, look).Should(Equal("other"))
	ledger.Verdict(t, w.ledger)
}

func TestWhatPoliciesCannotSeeIsToldOnTheWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	w.Expect(w.east.client.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "always-one"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	})).To(Succeed())
	w.east.deployment("web", 2, w.east.workload("web", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) {
		nameless(&d.Template)
		d.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](45)
	})
	for _, reason := range []string{"LockCreated", "DrainBlocked", "ReplicasWait", "GraceCut"} {
		w.Eventually(func() []string { return w.east.told("Deployment", "web", reason) }, within, look).Should(HaveLen(1), reason)
	}
	ledger.Verdict(t, w.ledger)
}
