package api

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
)

// aggregatedWithin bounds what the controller-manager and the authorizer need to take up what was written.
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
			eventually(t, name, func() bool {
				got, err := clientset(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
				return err == nil && got.Status.Allowed == tc.want
			})
		})
	}
}

const conch = "system:serviceaccount:conch-system:conch"

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

func TestConfirmingADeathTakesARightOfItsOwn(t *testing.T) {
	ns := namespace(t)
	name := create(t, ns, "guarded", `{}`)
	for _, role := range []string{"edit", "conch-operator"} {
		bind(t, ns, role)
	}
	annotate := func(user, key, value string) error {
		config := server.Config()
		config.Impersonate.UserName = user
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
		_, err = client.Resource(lockResource).Namespace(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	eventually(t, "an editor annotates", func() bool { return annotate("edit", lockv1alpha1.AnnotationRelease, "1") == nil })
	tries := 0 // a value that got in before the policy was live is no change any more
	eventually(t, "an editor is refused, with the reason", func() bool {
		tries++
		err := annotate("edit", lockv1alpha1.AnnotationConfirmDead, fmt.Sprint(tries))
		return err != nil && strings.Contains(err.Error(), "takes the verb confirm-dead on distributedlocks")
	})
	eventually(t, "an operator confirms", func() bool { return annotate("conch-operator", lockv1alpha1.AnnotationConfirmDead, "3") == nil })
	if err := annotate("edit", lockv1alpha1.AnnotationRelease, "2"); err != nil {
		t.Errorf("an editor cannot annotate a lock that bears a confirmation: %v", err)
	}
	if err := annotate("edit", lockv1alpha1.AnnotationConfirmDead, "4"); err == nil {
		t.Error("an editor changed a confirmation")
	}
}

// eventually asks until it holds, for roles and policies take effect a moment after they are written.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(aggregatedWithin); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", aggregatedWithin, what)
		}
	}
}

func TestInstallationPassesTheRestrictedPodStandard(t *testing.T) {
	eventually(t, "two replicas of conch are admitted", func() bool {
		pods, err := clientset(t).CoreV1().Pods("conch-system").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 2
	})
}

func TestSamplesAreAccepted(t *testing.T) {
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t)
	out := kubectl(t, "-n", ns, "apply", "-k", filepath.Join(root, "config/samples"))
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, " created\n") {
			t.Errorf("not accepted as it stands: %s", line)
		}
	}
	for _, kind := range []string{"deployment.apps/", "statefulset.apps/", "job.batch/", "cronjob.batch/", "distributedlock.conch.dev/", "pod/"} {
		if !strings.Contains(out, kind) {
			t.Errorf("no sample of %s:\n%s", kind, out)
		}
	}
}
