package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespaceTerminating = corev1.NamespaceTerminatingCause

// kind is how the workloads of one kind are found and read.
type kind struct {
	name    string
	version schema.GroupVersion
	// empty makes an object to read the whole workload into.
	empty func() client.Object
	// watched is what tells of the workload itself.
	watched func() client.Object
	// made is what workloads of this kind make and what bears the mark of their template, for those whose mark
	// was written there by hand. Pods are looked at besides.
	made func() client.Object
}

// Annotations cannot be selected by label, so whoever wants to see an annotated workload has to watch all
// of its kind. Deployments, StatefulSets and CronJobs are watched as metadata, of which StripMetadata leaves
// a third of a kilobyte for those without marks: see BenchmarkStripped. Jobs and pods come by the hundred
// thousand; of them only labelled ones are seen, and the label is where policies put it.
var kinds = []kind{
	{
		name: "Deployment", version: appsv1.SchemeGroupVersion,
		empty:   func() client.Object { return &appsv1.Deployment{} },
		watched: func() client.Object { return metadata(appsv1.SchemeGroupVersion, "Deployment") },
		made:    func() client.Object { return metadata(appsv1.SchemeGroupVersion, "ReplicaSet") },
	},
	{
		name: "StatefulSet", version: appsv1.SchemeGroupVersion,
		empty:   func() client.Object { return &appsv1.StatefulSet{} },
		watched: func() client.Object { return metadata(appsv1.SchemeGroupVersion, "StatefulSet") },
		made:    func() client.Object { return &appsv1.ControllerRevision{} },
	},
	{
		name: "CronJob", version: batchv1.SchemeGroupVersion,
		empty:   func() client.Object { return &batchv1.CronJob{} },
		watched: func() client.Object { return metadata(batchv1.SchemeGroupVersion, "CronJob") },
		made:    func() client.Object { return &batchv1.Job{} },
	},
	{
		name: "Job", version: batchv1.SchemeGroupVersion,
		empty:   func() client.Object { return &batchv1.Job{} },
		watched: func() client.Object { return &batchv1.Job{} },
	},
	{
		name: "Pod", version: corev1.SchemeGroupVersion,
		empty:   func() client.Object { return &corev1.Pod{} },
		watched: func() client.Object { return &corev1.Pod{} },
	},
}

func metadata(version schema.GroupVersion, kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(version.WithKind(kind))
	return m
}

// Metadata are the objects of which only metadata is watched, for the options of the cache.
func Metadata() []client.Object {
	var out []client.Object
	for _, k := range kinds {
		if m, ok := k.watched().(*metav1.PartialObjectMetadata); ok {
			out = append(out, m)
		}
	}
	return out
}
