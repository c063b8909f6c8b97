package workloads

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StripMetadata is a transform of the cache: of a workload's metadata it keeps who it is, its version and
// its marks. The applied configuration that kubectl leaves in an annotation is usually the biggest part.
func StripMetadata(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	m.ObjectMeta = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: marksIn(m.Labels), Annotations: marksIn(m.Annotations),
	}
	return m, nil
}

// ofDomain reports whether a key is of conch's domain. The API server takes any case there in an annotation.
func ofDomain(key string) bool { return strings.HasPrefix(strings.ToLower(key), domain) }

// marksIn are the entries of conch's domain, known or not; nil if there are none.
func marksIn(set map[string]string) map[string]string {
	var out map[string]string
	for k, v := range set {
		if ofDomain(k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
