package naming_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conch-dev/conch/controllers/naming"
)

func TestOf(t *testing.T) {
	owned := func(kind, name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "x", Labels: labels, OwnerReferences: []metav1.OwnerReference{
			{Kind: "Other", Name: "not-the-controller"}, {Kind: kind, Name: name, Controller: ptr.To(true)},
		}}
	}
	hash := map[string]string{"pod-template-hash": "5d9c7f8b6"}
	tests := map[string]struct {
		kind string
		meta metav1.ObjectMeta
		want string
	}{
		"a pod that names its lock":                {"Pod", metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"conch.dev/lock": " mine "}}, "mine"},
		"a bare pod":                               {"Pod", metav1.ObjectMeta{Name: "x"}, "pod-x"},
		"a bare Job":                               {"Job", metav1.ObjectMeta{Name: "x"}, "job-x"},
		"a Job of a CronJob":                       {"Job", owned("CronJob", "nightly", nil), "cronjob-nightly"},
		"a pod of a Job":                           {"Pod", owned("Job", "nightly-29", nil), ""},
		"a pod of a Deployment":                    {"Pod", owned("ReplicaSet", "web-a-5d9c7f8b6", hash), "deployment-web-a"},
		"a pod of a StatefulSet":                   {"Pod", owned("StatefulSet", "db", nil), "statefulset-db"},
		"a pod of something else":                  {"Pod", owned("Rollout", "canary", nil), "rollout-canary"},
		"a pod of a ReplicaSet without Deployment": {"Pod", owned("ReplicaSet", "web-5d9c7f8b6", nil), ""},
		"a pod whose ReplicaSet has the name cut":  {"Pod", owned("ReplicaSet", strings.Repeat("a", 243)+"-5d9c7f8b6", hash), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := naming.Of(tc.kind, &tc.meta); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
