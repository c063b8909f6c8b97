package policies

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// template returns the marks of a template: the label, the annotation and the lock, or dashes.
func template(o *unstructured.Unstructured, path ...string) string {
	at := func(of, key string) string {
		m, _, _ := unstructured.NestedStringMap(o.Object, append(append([]string{}, path...), "metadata", of)...)
		if v, found := m[key]; found {
			return v
		}
		return "-"
	}
	return strings.Join([]string{at("labels", "conch.dev/singleton"), at("annotations", "conch.dev/singleton"), at("annotations", "conch.dev/lock")}, " ")
}

func TestTheAnnotationGoesIntoTheTemplateAndOutOfItAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	steps := []struct {
		why, patch, want string
	}{
		{"nothing is marked", "{}", "- - -"},
		{"annotated", "{metadata: {annotations: {conch.dev/singleton: exclusive}}}", "exclusive exclusive deployment-a"},
		{"another mode", "{metadata: {annotations: {conch.dev/singleton: leader}}}", "leader leader deployment-a"},
		{"a lock by name", "{metadata: {annotations: {conch.dev/lock: shared}}}", "leader leader shared"},
		{"its own lock again", "{metadata: {annotations: {conch.dev/lock: null}}}", "leader leader deployment-a"},
		{"another mode written into the template", "{spec: {template: {metadata: {labels: {conch.dev/singleton: exclusive}}}}}", "leader leader deployment-a"},
		{"a lock written into the template", "{spec: {template: {metadata: {annotations: {conch.dev/lock: mine}}}}}", "leader leader mine"},
		{"no longer annotated, but the lock is the user's", "{metadata: {annotations: {conch.dev/singleton: null}}}", "- - mine"},
		{"annotated again", "{metadata: {annotations: {conch.dev/singleton: active-passive, conch.dev/lock: b}}}", "active-passive active-passive b"},
		{"no longer annotated at all", "{metadata: {annotations: {conch.dev/singleton: null, conch.dev/lock: null}}}", "- - -"},
		{"marked by hand", "{spec: {template: {metadata: {labels: {conch.dev/singleton: leader}, annotations: {conch.dev/lock: hand}}}}}", "leader - hand"},
		{"touched", "{metadata: {labels: {a: b}}}", "leader - hand"},
		{"annotated in the template only", "{spec: {template: {metadata: {labels: {conch.dev/singleton: null}, annotations: {conch.dev/singleton: leader}}}}}", "leader leader hand"},
	}
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		o := s.admin.made(workload(kind, "name: a", "replicas: 0, ", "", ""))
		for _, step := range steps {
			s.Expect(s.admin.merge(o, step.patch)).To(Succeed(), step.why)
			want := strings.ReplaceAll(step.want, "deployment-a", strings.ToLower(kind)+"-a")
			s.Expect(template(s.root.now(o), "spec", "template")).To(Equal(want), "%s: %s", kind, step.why)
		}
	}
	o := s.admin.made(workload("Deployment", "name: "+strings.Repeat("a", 245)+", "+exclusive, "replicas: 0, ", "", ""))
	s.Expect(template(o, "spec", "template")).To(Equal("exclusive exclusive -"), "conch names the lock of a name as long as this")
}

func TestTheAnnotationOfACronJobGoesIntoBothTemplates(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := s.admin.made(cronJob("name: nightly", "", "", ""))
	for _, step := range []struct{ why, patch, want string }{
		{"annotated", "{metadata: {annotations: {conch.dev/singleton: exclusive}}}", "exclusive exclusive cronjob-nightly"},
		{"a lock by name", "{metadata: {annotations: {conch.dev/lock: shared}}}", "exclusive exclusive shared"},
		{"no longer annotated", "{metadata: {annotations: {conch.dev/singleton: null}}}", "- - -"},
	} {
		s.Expect(s.admin.merge(o, step.patch)).To(Succeed(), step.why)
		now := s.root.now(o)
		s.Expect(template(now, "spec", "jobTemplate")).To(Equal(step.want), step.why)
		s.Expect(template(now, "spec", "jobTemplate", "spec", "template")).To(Equal(step.want), step.why)
	}
}

func TestJobsAndBarePodsAreMarkedAtTheirCreation(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cases := map[string]struct{ doc, own, template string }{
		"a Job":                    {job("name: a, "+exclusive, "", ""), "exclusive exclusive job-a", "exclusive exclusive job-a"},
		"a Job with a lock":        {job("name: b, annotations: {conch.dev/singleton: exclusive, conch.dev/lock: l}", "", ""), "exclusive exclusive l", "exclusive exclusive l"},
		"a Job without a name yet": {job("generateName: c-, "+exclusive, "", ""), "exclusive exclusive -", "exclusive exclusive -"},
		"a Job by its template":    {job("name: d", "", exclusiveLabel), "exclusive exclusive job-d", "exclusive exclusive job-d"},
		"a pod":                    {pod("name: a, "+exclusive, plainSpec), "exclusive exclusive pod-a", ""},
		"a leader pod":             {pod("name: b, annotations: {conch.dev/singleton: leader}", plainSpec), "leader leader pod-b", ""},
		"an unmarked pod":          {pod("name: c", plainSpec), "- - -", ""},
		"an unmarked Job":          {job("name: e", "", ""), "- - -", "- - -"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := s.admin.made(tc.doc)
			g.Expect(template(o)).To(Equal(tc.own))
			if tc.template != "" {
				g.Expect(template(o, "spec", "template")).To(Equal(tc.template))
			}
			g.Expect(waits(o)).To(Equal(strings.HasPrefix(tc.own, "exclusive")))
		})
	}
}
