package naming

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// Workload is the kind and name of the workload that a pod or Job belongs to, or its own where it belongs to
// none. It goes by the object alone: an index asks, before the owner may be in any cache. ok is false where
// the object does not tell: for the pods of a Job, whose Job is what wants the lock; for a ReplicaSet that no
// Deployment made; and for a Deployment whose name is so long that its ReplicaSets bear it cut.
func Workload(kind string, o metav1.Object) (ofKind, name string, ok bool) {
	owner := metav1.GetControllerOf(o)
	switch {
	case owner == nil:
		return kind, o.GetName(), true
	case owner.Kind == "ReplicaSet":
		hash := o.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
		name, ok = strings.CutSuffix(owner.Name, "-"+hash)
		return "Deployment", name, ok && hash != "" && len(owner.Name) < longest
	case owner.Kind == "Job":
		return "", "", false
	}
	return owner.Kind, owner.Name, true
}

// Of is the lock of a marked pod or Job: the one that it names, else its workload's own; empty where neither
// is known.
func Of(kind string, o metav1.Object) string {
	if named := Named(o); named != "" {
		return named
	}
	if kind, name, ok := Workload(kind, o); ok {
		return Lock(kind, name)
	}
	return ""
}

// Named is the lock that an object names itself, empty if it leaves that to conch.
func Named(o metav1.Object) string {
	return strings.TrimSpace(o.GetAnnotations()[lockv1alpha1.AnnotationLock])
}

// CutFrom is the length of a Deployment's name from which on its pods no longer tell it.
const CutFrom = longest - len("-0123456789")
