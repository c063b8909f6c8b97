package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
)

// keepsLocks makes the API server refuse to delete the locks of a namespace, the garbage collector included, until
// the function that it returns is called.
func (s *side) keepsLocks() func() {
	s.w.t.Helper()
	name := "keeps-" + s.w.ns
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.w.ns}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{"conch.dev"}, APIVersions: []string{"*"}, Resources: []string{"distributedlocks"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "kept by a test"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	ctx := s.w.t.Context()
	s.w.Expect(s.client.Create(ctx, policy)).To(Succeed())
	s.w.Expect(s.client.Create(ctx, binding)).To(Succeed())
	s.newLock("canary")
	s.w.Eventually(func() error { return s.client.Delete(ctx, s.lock("canary"), client.DryRunAll) }, within, look).Should(MatchError(ContainSubstring("kept by a test")))
	return func() {
		s.w.Expect(s.client.Delete(ctx, binding)).To(Succeed())
		s.w.Expect(s.client.Delete(ctx, policy)).To(Succeed())
	}
}

// C101: a workload is deleted and made again at once, before the garbage collector took the lock of the one before. It waits
// for a lock of its own instead of starting under one that is about to go.
func TestAWorkloadThatWasMadeAgainAtOnceWaitsForALockOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.east.conch(1)
	again := func() {
		w.east.deployment("web", 1, w.east.workload("web", "exclusive"), rolling, func(d *appsv1.DeploymentSpec) { nameless(&d.Template) })
	}
	again()
	first := w.east.runs("web", 0)
	before := w.east.holds("deployment-web")
	letGo := w.east.keepsLocks()
	w.Expect(w.east.client.Delete(t.Context(), w.east.deploymentNow("web"))).To(Succeed())
	again()
	w.east.gone(first.Name)
	w.east.says("deployment-web", lockv1alpha1.ConditionReady, "False OwnerGone")
	w.east.gatedOnly("web", 1, 2*time.Second)
	w.Expect(w.redisClient().Exists(t.Context(), w.keyOf("deployment-web")).Val()).To(BeZero())

	letGo()
	w.Eventually(func() bool {
		l := w.east.lock("deployment-web")
		return l != nil && l.UID != before.UID
	}, within, look).Should(BeTrue())
	w.east.holds("deployment-web")
	w.Consistently(func() int { return w.starts("web") }, 2*time.Second, look).Should(BeNumerically("<=", 2))
	w.Expect(w.starts("web")).To(Equal(2), "once before it was deleted, and once after")
	ledger.Verdict(t, w.ledger)
}
