package api

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conch-dev/conch/test/cluster"
)

// aggregatedWithin bounds what the controller-manager needs to add conch's roles to view and edit.
const aggregatedWithin = 20 * time.Second

func TestRolesGiveWhatTheySay(t *testing.T) {
	ns := namespace(t)
	for _, role := range []string{"view", "edit", "conch-operator"} {
		bind(t, ns, role)
	}
	cases := map[string]struct {
		user, verb, subresource string
		want                    bool
	}{
		"a viewer reads locks":                 {"view", "list", "", true},
		"a viewer reads their status":          {"view", "get", "status", true},
		"a viewer makes none":                  {"view", "create", "", false},
		"an editor makes locks":                {"edit", "create", "", true},
		"an editor deletes locks":              {"edit", "delete", "", true},
		"an editor writes no status":           {"edit", "update", "status", false},
		"an editor confirms no death":          {"edit", "confirm-dead", "", false},
		"an editor overrides nothing":          {"edit", "override", "", false},
		"an operator confirms a death":         {"conch-operator", "confirm-dead", "", true},
		"an operator overrides":                {"conch-operator", "override", "", true},
		"an operator writes no status":         {"conch-operator", "patch", "status", false},
		"conch reads locks":                    {conch, "watch", "", true},
		"conch writes status":                  {conch, "patch", "status", true},
		"conch deletes no lock":                {conch, "delete", "", false},
		"conch confirms no death on its own":   {conch, "confirm-dead", "", false},
		"a stranger sees nothing of any locks": {"stranger", "get", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: tc.user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: ns, Group: lockResource.Group, Resource: lockResource.Resource, Verb: tc.verb, Subresource: tc.subresource,
				},
			}}
			if got := settled(t, review, tc.want); got != tc.want {
				t.Errorf("allowed: %t, want %t", got, tc.want)
			}
		})
	}
}

const conch = "system:serviceaccount:conch-system:conch"

// settled asks until the answer is the wanted one, for aggregation and authorizer follow writes late.
func settled(t *testing.T, review *authorizationv1.SubjectAccessReview, want bool) bool {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(aggregatedWithin); ; <-tick.C {
		got, err := clientset(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.Allowed == want || time.Now().After(deadline) {
			return got.Status.Allowed
		}
	}
}

// bind gives a user of the role's name that role.
func bind(t *testing.T, ns, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: role}},
	}
	if _, err := clientset(t).RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestInstallationPassesTheRestrictedPodStandard(t *testing.T) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(aggregatedWithin); ; <-tick.C {
		pods, err := clientset(t).CoreV1().Pods("conch-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 2 replicas were admitted:\n%s", len(pods.Items), kubectl(t, "-n", "conch-system", "get", "events"))
		}
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t)
	out := kubectl(t, "-n", ns, "apply", "-k", filepath.Join(root, "config/samples"))
	if got := strings.Count(out, "created"); got != 5 {
		t.Errorf("%d objects created:\n%s", got, out)
	}
}
