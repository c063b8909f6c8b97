package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAnOperatorBreaksTheGlassInOneRequestWithAReason(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	reason := "the shop is closed, " + s.ns
	p, j := s.waiting("a"), s.suspended("a")
	s.Expect(s.boss.merge(p, liftMerge)).To(MatchError(ContainSubstring(lifts)), "the right alone is not enough")
	s.Expect(s.boss.merge(p, "{metadata: {annotations: {conch.dev/override: '"+reason+"'}}, spec: {schedulingGates: []}}")).To(Succeed())
	s.Expect(waits(s.root.now(p))).To(BeFalse())
	s.Expect(s.boss.merge(p, "{metadata: {labels: {conch.dev/role: leader}}}")).To(MatchError(ContainSubstring(leads)), "a reason excuses one request")
	s.Expect(s.admin.merge(p, "{metadata: {annotations: {conch.dev/override: null}}}")).To(MatchError(ContainSubstring("takes the verb override")))
	s.Expect(s.boss.merge(p, "{metadata: {annotations: {conch.dev/override: another, conch.dev/fencing-token: '7'}}}")).To(Succeed())

	s.Expect(s.boss.merge(j, "{spec: {suspend: false}}")).To(MatchError(ContainSubstring(resumes)))
	s.Expect(s.boss.merge(j, "{metadata: {annotations: {conch.dev/override: ''}}, spec: {suspend: false}}")).To(MatchError(ContainSubstring(resumes)))
	s.Expect(s.boss.merge(j, "{metadata: {annotations: {conch.dev/override: '"+reason+"'}}, spec: {suspend: false}}")).To(Succeed())
	s.Eventually(func() int { return len(s.pods(client.MatchingLabels{"job-name": "a"})) }, within, look).Should(Equal(1), "the Job's pod is not gated")

	s.Eventually(func() int { return s.audited(reason) }, within, look).Should(BeNumerically(">=", 2))
}

// audited counts the requests of the audit log with a reason.
func (s *stage) audited(reason string) int {
	raw, err := os.ReadFile(filepath.Join(s.cluster.Dir(), "audit.log"))
	s.Expect(err).NotTo(HaveOccurred())
	return strings.Count(string(raw), s.boss.name+" overrides conch: "+reason)
}

func TestConchItselfIsNotRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	record := "annotations: {conch.dev/key: k, conch.dev/holder-identity: o, conch.dev/fencing-token: '1'}"
	p, j := s.waiting("a"), s.suspended("a")
	s.Expect(s.conch.merge(p, "{metadata: {"+record+"}, spec: {schedulingGates: []}}")).To(Succeed())
	s.Expect(s.conch.merge(p, "{metadata: {labels: {conch.dev/role: leader}}}")).To(Succeed())
	s.Expect(s.conch.merge(p, "{metadata: {labels: {conch.dev/role: null}, annotations: {conch.dev/ended: '1'}}}")).To(Succeed())

	s.Expect(s.conch.merge(j, "{metadata: {"+record+"}, spec: {suspend: false, template: {metadata: {"+record+"}}}}")).To(Succeed())
	mine := client.MatchingLabels{"job-name": "a"}
	s.Eventually(func() int { return len(s.pods(mine)) }, within, look).Should(Equal(1), "its pods are not gated")
	s.Expect(s.pods(mine)[0].GetAnnotations()).To(HaveKeyWithValue("conch.dev/fencing-token", "1"))
	s.Expect(s.admin.merge(j, "{spec: {suspend: true}}")).To(Succeed(), "anyone suspends")
	s.Eventually(func() int { return len(s.pods(mine)) }, within, look).Should(BeZero())
	s.Expect(s.admin.merge(j, "{spec: {suspend: false}}")).To(MatchError(ContainSubstring(resumes)))
}

// Pods of marked Jobs and of ReplicaSets, made by the controllers under the names that most clusters give them.
func TestOnlyTheJobControllersPodsAreBornWithATokenAndWithoutAGate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.suspended("a")
	owned := func(kind, api string) string {
		return "ownerReferences: [{apiVersion: " + api + ", kind: " + kind + ", name: a, uid: " + string(j.GetUID()) + ", controller: true}], " +
			"labels: {conch.dev/singleton: exclusive}, annotations: {conch.dev/fencing-token: '1'}"
	}
	s.Expect(s.as(jobController).apply(pod("name: a, "+owned("Job", "batch/v1"), plainSpec))).To(Succeed())
	s.Expect(s.as(jobController).apply(pod("name: b, "+owned("Job", "example.com/v1"), plainSpec))).To(MatchError(ContainSubstring(records)))
	s.Expect(s.as(replicaSetController).apply(pod("name: c, "+owned("ReplicaSet", "apps/v1"), plainSpec))).To(MatchError(ContainSubstring(records)))
	s.Expect(s.as(replicaSetController).apply(pod("name: d, "+owned("Job", "batch/v1"), plainSpec))).To(MatchError(ContainSubstring(records)))
}
