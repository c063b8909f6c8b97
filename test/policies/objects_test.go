package policies

import (
	"fmt"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	plainSpec = "{restartPolicy: Never, containers: [{name: c, image: c}]}"
	gatedSpec = "{schedulingGates: [{name: conch.dev/lock}], containers: [{name: c, image: c}]}"
)

// pod, job and so on are objects with metadata and, where it matters, a template's metadata in YAML.
func pod(meta, spec string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {%s}, spec: %s}", meta, spec)
}

func job(meta, more, templateMeta string) string {
	return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {%s}, spec: {%stemplate: {metadata: {%s}, spec: %s}}}",
		meta, more, templateMeta, plainSpec)
}

func cronJob(meta, more, jobMeta, podMeta string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {%s}, spec: {timeZone: Etc/UTC, schedule: "0 0 1 1 *", %s
		jobTemplate: {metadata: {%s}, spec: {template: {metadata: {%s}, spec: %s}}}}}`, meta, more, jobMeta, podMeta, plainSpec)
}

func workload(kind, meta, more, labels, annotations string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {%s}, spec: {%sselector: {matchLabels: {app: a}},
		template: {metadata: {labels: {app: a%s}, annotations: {%s}}, spec: {containers: [{name: c, image: c}]}}}}`,
		kind, meta, more, labels, annotations)
}

const (
	exclusive      = "annotations: {conch.dev/singleton: exclusive}"
	exclusiveLabel = "labels: {conch.dev/singleton: exclusive}"
)

// waiting is a pod as it waits for its lock.
func (s *stage) waiting(name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.admin.made(pod("name: "+name+", annotations: {conch.dev/singleton: exclusive, conch.dev/lock: one}", plainSpec))
}

// suspended is a Job as it waits for its lock.
func (s *stage) suspended(name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.admin.made(job("name: "+name+", annotations: {conch.dev/singleton: exclusive, conch.dev/lock: one}", "", ""))
}

// pods lists those of the namespace with the label app=a, or those of a Job.
func (s *stage) pods(selector client.MatchingLabels) []unstructured.Unstructured {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("PodList")
	s.Expect(s.root.List(s.t.Context(), list, client.InNamespace(s.ns), selector)).To(Succeed())
	return list.Items
}

// waits tells whether a pod is still behind its gate with its marks, or a Job suspended with its own.
func waits(o *unstructured.Unstructured) bool {
	if o.GetLabels()["conch.dev/singleton"] != "exclusive" {
		return false
	}
	if o.GetKind() == "Job" {
		return at(o, "spec", "suspend") == true
	}
	gates, _, _ := unstructured.NestedSlice(o.Object, "spec", "schedulingGates")
	for _, g := range gates {
		if gate, ok := g.(map[string]any); ok && gate["name"] == "conch.dev/lock" {
			return true
		}
	}
	return false
}
