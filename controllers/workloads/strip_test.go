package workloads

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
)

// applied is a Deployment's metadata as kubectl and controllers leave it.
func applied(n int) *metav1.PartialObjectMetadata {
	m := metadata(kinds[0].version, "Deployment")
	m.Name, m.Namespace, m.Generation = fmt.Sprintf("web-%d", n), strings.Clone("team"), 3
	m.Labels = map[string]string{"app": m.Name, "conch.dev/singleton": "leader"}
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 4096)}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2048))}}
	return m
}

func TestStripMetadataKeepsWhoItIsAndItsMarks(t *testing.T) {
	got, err := StripMetadata(applied(1))
	if err != nil {
		t.Fatal(err)
	}
	want := metadata(kinds[0].version, "Deployment")
	want.Name, want.Namespace, want.Generation = "web-1", "team", 3
	want.Labels = map[string]string{"conch.dev/singleton": "leader"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkStripped says what a workload without marks costs in the cache, before and after.
func BenchmarkStripped(b *testing.B) {
	for _, strip := range []bool{false, true} {
		b.Run(fmt.Sprintf("strip=%t", strip), func(b *testing.B) {
			const n = 10000
			for b.Loop() {
				var before, after runtime.MemStats
				kept := make([]any, n)
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range kept {
					m := applied(i)
					delete(m.Labels, "conch.dev/singleton")
					kept[i] = m
					if strip {
						kept[i], _ = StripMetadata(m)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/workload")
				runtime.KeepAlive(kept)
			}
		})
	}
}
