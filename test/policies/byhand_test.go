package policies

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/test/cluster"
)

// Before Kubernetes 1.36 the marks are written by hand, and what lacks them is refused (C119).
func TestWithoutMutatingPoliciesTheMessageSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	_, west := both(t)
	s := stageOn(t, west)
	byHand := func(spec string) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, %s}, spec: {selector: {matchLabels: {app: a}}, template: {
			metadata: {labels: {app: a, conch.dev/singleton: exclusive}, annotations: {conch.dev/lock: deployment-web}}, spec: %s}}}`, exclusive, spec)
	}
	s.Eventually(func() error {
		return s.admin.apply(workload("Deployment", "name: web, "+exclusive, "", "", ""), client.DryRunAll)
	}, within, look).Should(
		MatchError(ContainSubstring("add to spec.template.metadata labels: {conch.dev/singleton: exclusive} and annotations: {conch.dev/lock: deployment-web}")))
	refused := map[string]struct{ doc, want string }{
		"a template without gate":       {byHand("{containers: [{name: c, image: c}]}"), "add spec.template.spec.schedulingGates: [{name: conch.dev/lock}]"},
		"a template with another mode":  {workload("StatefulSet", "name: db, "+exclusive, "", ", conch.dev/singleton: leader", "conch.dev/lock: statefulset-db"), "{conch.dev/singleton: exclusive}"},
		"a CronJob with the annotation": {cronJob("name: nightly, "+exclusive, "", "", ""), "add to spec.jobTemplate.metadata labels: {conch.dev/singleton: exclusive} and annotations: {conch.dev/lock: cronjob-nightly}"},
		"a CronJob without suspend": {cronJob("name: nightly, "+exclusive, "", "labels: {conch.dev/singleton: exclusive}, annotations: {conch.dev/lock: cronjob-nightly}", exclusiveLabel),
			"add spec.jobTemplate.spec.suspend: true"},
		"a Job that is not suspended":         {job("name: a, "+exclusiveLabel, "", ""), "add spec.suspend: true"},
		"a Job with its template marked only": {job("name: a, labels: {a: b}", "suspend: true, ", exclusiveLabel), "add metadata.labels {conch.dev/singleton: exclusive} to the Job"},
		"a Job whose marks differ":            {job("name: a, "+exclusiveLabel, "suspend: true, ", "labels: {conch.dev/singleton: leader}"), "must be the same"},
		"a pod without a gate":                {pod("name: a, "+exclusiveLabel, plainSpec), "add spec.schedulingGates: [{name: conch.dev/lock}]"},
		"a pod with the annotation only":      {pod("name: a, "+exclusive, gatedSpec), "add metadata.labels {conch.dev/singleton: exclusive}"},
		"a pod of a Job that is none": {
			pod("name: a, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}], "+exclusiveLabel, plainSpec), "waits for its lock behind a gate"},
	}
	for name, tc := range refused {
		t.Run(name, func(t *testing.T) {
			// The API server takes up policies one after the other.
			NewWithT(t).Eventually(func() error { return s.admin.apply(tc.doc, client.DryRunAll) }, within, look).Should(MatchError(ContainSubstring(tc.want)))
		})
	}
	for name, doc := range map[string]string{
		"a Deployment as the messages say": byHand(gatedSpec),
		"a leader Deployment":              workload("Deployment", "name: l", "", ", conch.dev/singleton: leader", ""),
		"a suspended Job":                  job("name: b, "+exclusiveLabel, "suspend: true, ", exclusiveLabel),
		"a gated pod":                      pod("name: b, "+exclusiveLabel, gatedSpec),
		"a workload that is not marked":    workload("Deployment", "name: u", "", "", ""),
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(s.admin.apply(doc)).To(Succeed()) })
	}
}

// Each mark that conch knows is one that the policies let through, so that a new one is not forgotten here.
func TestThePoliciesKnowEachMarkOfTheAPI(t *testing.T) {
	t.Parallel()
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(filepath.Join(root, "config/policies/validating/marks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api/v1alpha1/marks.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if key, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(key, "conch.dev/") {
				seen++
				if !strings.Contains(string(policy), "'"+key+"'") {
					t.Errorf("the policy conch-marks does not know %s", key)
				}
			}
		}
		return true
	})
	if seen < 10 {
		t.Errorf("only %d marks were found in the API", seen)
	}
}

// Removing the policies frees what waits: nothing is stuck (C121). They are all gone from a cluster of its own.
func TestNothingIsStuckOnceThePoliciesAreGone(t *testing.T) {
	t.Parallel()
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "removal"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	if err := install(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, c)
	p, j := s.waiting("a"), s.suspended("a")
	s.Expect(s.admin.merge(p, liftMerge)).To(MatchError(ContainSubstring(lifts)))
	_, err = c.Kubectl(t.Context(), "delete", "validatingadmissionpolicies,mutatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicybindings",
		"-l", "app.kubernetes.io/name=conch")
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func() error { return s.admin.merge(p, liftMerge) }, within, look).Should(Succeed())
	s.Eventually(func() error { return s.admin.merge(j, "{spec: {suspend: false}}") }, within, look).Should(Succeed())
	s.Expect(s.admin.Delete(t.Context(), p)).To(Succeed())
	s.Expect(s.admin.Delete(t.Context(), j)).To(Succeed())
}
