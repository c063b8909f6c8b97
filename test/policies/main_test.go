// Package policies tries conch's admission policies on a real API server with the real controllers of
// Kubernetes: what they add, refuse and warn of, and that a namespace's admin finds no way around them.
// conch itself does not run; tests write in its name where it would.
package policies

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/rig"
)

const (
	within = 30 * time.Second
	look   = 50 * time.Millisecond
	// jobController and replicaSetController are who the controllers are on most clusters. Those of the test
	// cluster share one name, as --use-service-account-credentials=false has it.
	jobController        = "system:serviceaccount:kube-system:job-controller"
	replicaSetController = "system:serviceaccount:kube-system:replicaset-controller"
	// strong is the role of a namespace's admin here: everything but the verbs of conch's operators.
	strong = "test-strong-admin"
)

// clusters are east, with all policies, and west, which has those for Kubernetes before 1.36.
var (
	clusters  cluster.Pair
	installed sync.Once
	installOK error
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(clusters.Around(m).Run())
}

// installAll puts conch's objects on both clusters.
func installAll(ctx context.Context, east, west *cluster.Cluster) error {
	if err := install(ctx, east); err != nil {
		return err
	}
	root, err := cluster.ModuleRoot()
	if err != nil {
		return err
	}
	for _, dir := range []string{"namespace", "crd", "rbac", "policies/validating", "policies/by-hand"} {
		if err := west.ApplyDir(ctx, filepath.Join(root, "config", dir)); err != nil {
			return err
		}
	}
	return addRole(ctx, west)
}

// install puts everything on a cluster, and the role of a namespace's admin.
func install(ctx context.Context, c *cluster.Cluster) error {
	if err := rig.Install(ctx, c); err != nil {
		return err
	}
	return addRole(ctx, c)
}

func addRole(ctx context.Context, c *cluster.Cluster) error {
	cl, err := client.New(c.Config(), client.Options{})
	if err != nil {
		return err
	}
	return cl.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: strong}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps", "batch", "policy"}, Resources: []string{"*"},
		Verbs: []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"},
	}}})
}

// stage is a namespace with its users.
type stage struct {
	*WithT
	t       *testing.T
	cluster *cluster.Cluster
	ns      string
	root    *user // cluster-admin, for what a test only looks at
	admin   *user // may do everything in the namespace but override conch
	boss    *user // the same, and is one of conch's operators
	conch   *user
}

// user is a client under a name. What the API server warns of is kept.
type user struct {
	client.Client
	name string
	ns   string
	t    *testing.T

	mu     sync.Mutex // guards warned
	warned []string
}

// HandleWarningHeaderWithContext keeps a warning of the API server.
func (u *user) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warned = append(u.warned, text)
}

// warnings returns what the API server warned of since the last call.
func (u *user) warnings() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.warned
	u.warned = nil
	return out
}

func newStage(t *testing.T) *stage {
	t.Helper()
	east, _ := both(t)
	return stageOn(t, east)
}

func both(t *testing.T) (east, west *cluster.Cluster) {
	t.Helper()
	east, west = clusters.Start(t)
	installed.Do(func() { installOK = installAll(context.Background(), east, west) })
	if installOK != nil {
		t.Fatal(installOK)
	}
	return east, west
}

func stageOn(t *testing.T, c *cluster.Cluster) *stage {
	t.Helper()
	s := &stage{WithT: NewWithT(t), t: t, cluster: c, ns: cluster.Namespace(t, c)}
	s.root = s.as("")
	s.admin, s.boss, s.conch = s.as("admin-"+s.ns), s.as("boss-"+s.ns), s.as(rig.User)
	s.bind(strong, s.admin.name, s.boss.name, s.conch.name)
	s.bind("conch-operator", s.boss.name)
	for _, u := range []*user{s.admin, s.boss, s.conch} { // until the authorizer has read the bindings
		s.Eventually(func() error {
			return u.apply("{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: c, image: c}]}}", client.DryRunAll)
		},
			within, look).Should(Succeed())
	}
	s.Eventually(func() error {
		return s.boss.apply(`{apiVersion: v1, kind: Pod, metadata: {name: probe, annotations: {conch.dev/override: a try}}, spec: {containers: [{name: c, image: c}]}}`, client.DryRunAll)
	}, within, look).Should(Succeed())
	return s
}

// as returns a client that acts under a name; without one it is the cluster's administrator.
func (s *stage) as(name string) *user {
	s.t.Helper()
	u := &user{name: name, ns: s.ns, t: s.t}
	cfg := rest.CopyConfig(s.cluster.Config())
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
	cfg.WarningHandlerWithContext = u
	var err error
	u.Client, err = client.New(cfg, client.Options{})
	s.Expect(err).NotTo(HaveOccurred())
	return u
}

func (s *stage) bind(role string, users ...string) {
	s.t.Helper()
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u})
	}
	s.Expect(s.root.Create(s.t.Context(), b)).To(Succeed())
}

// object reads YAML into an object of the namespace.
func (u *user) object(doc string) *unstructured.Unstructured {
	u.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
		u.t.Fatalf("%v in\n%s", err, doc)
	}
	o.SetNamespace(u.ns)
	return o
}

// apply creates an object from YAML.
func (u *user) apply(doc string, opts ...client.CreateOption) error {
	u.t.Helper()
	return u.Create(u.t.Context(), u.object(doc), opts...)
}

// merge patches an object with a merge patch in YAML, under a subresource if one is named.
func (u *user) merge(o client.Object, doc string, subresource ...string) error {
	u.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		u.t.Fatalf("%v in\n%s", err, doc)
	}
	return u.patch(o, types.MergePatchType, string(body), subresource...)
}

func (u *user) patch(o client.Object, kind types.PatchType, body string, subresource ...string) error {
	target := o.DeepCopyObject().(client.Object)
	if len(subresource) > 0 {
		return u.SubResource(subresource[0]).Patch(u.t.Context(), target, client.RawPatch(kind, []byte(body)))
	}
	return u.Patch(u.t.Context(), target, client.RawPatch(kind, []byte(body)))
}

// made creates an object as cluster-admin would not be asked to, and returns what is stored.
func (u *user) made(doc string) *unstructured.Unstructured {
	u.t.Helper()
	o := u.object(doc)
	if err := u.Create(u.t.Context(), o); err != nil {
		u.t.Fatalf("%v\n%s", err, doc)
	}
	return o
}

// now reads an object again.
func (u *user) now(o *unstructured.Unstructured) *unstructured.Unstructured {
	u.t.Helper()
	out := o.DeepCopy()
	if err := u.Get(u.t.Context(), client.ObjectKeyFromObject(o), out); err != nil {
		u.t.Fatal(err)
	}
	return out
}

// at reads a path of an object, as in "spec.suspend".
func at(o *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return v
}
