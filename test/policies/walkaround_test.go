package policies

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const liftMerge = "{spec: {schedulingGates: []}}"

// attempt is one try of a namespace's admin on an object that waits.
type attempt struct {
	try func(u *user, o *unstructured.Unstructured) error
	// want is what the refusal says; without it the try may go through, as long as the object waits on.
	want string
}

func merging(doc string, subresource ...string) func(*user, *unstructured.Unstructured) error {
	return func(u *user, o *unstructured.Unstructured) error { return u.merge(o, doc, subresource...) }
}

func patching(kind types.PatchType, body string) func(*user, *unstructured.Unstructured) error {
	return func(u *user, o *unstructured.Unstructured) error { return u.patch(o, kind, body) }
}

// inTurn tries several requests and returns what the last one gave.
func inTurn(tries ...func(*user, *unstructured.Unstructured) error) func(*user, *unstructured.Unstructured) error {
	return func(u *user, o *unstructured.Unstructured) error {
		var err error
		for _, try := range tries {
			err = try(u, o)
		}
		return err
	}
}

const (
	lifts   = "only conch lifts the gate"
	marks   = "do not change while it lives"
	resumes = "only conch resumes this Job"
	leads   = "only conch writes the label conch.dev/role"
	records = "only conch writes the annotations conch.dev/fencing-token"
)

func podAttempts() map[string]attempt {
	return map[string]attempt{
		"a merge patch":                {merging(liftMerge), lifts},
		"a JSON patch":                 {patching(types.JSONPatchType, `[{"op":"remove","path":"/spec/schedulingGates"}]`), lifts},
		"a strategic patch":            {patching(types.StrategicMergePatchType, `{"spec":{"schedulingGates":[{"$patch":"delete","name":"conch.dev/lock"}]}}`), lifts},
		"a strategic patch of the all": {patching(types.StrategicMergePatchType, `{"spec":{"schedulingGates":[{"$patch":"replace"}]}}`), lifts},
		"the label first":              {merging("{metadata: {labels: {conch.dev/singleton: null}}}"), marks},
		"the label, then the gate": {
			inTurn(merging("{metadata: {labels: {conch.dev/singleton: null}, annotations: {conch.dev/singleton: null}}}"), merging(liftMerge)), lifts},
		"gate and marks in one patch": {
			merging("{metadata: {labels: {conch.dev/singleton: null}, annotations: {conch.dev/singleton: null, conch.dev/lock: null}}, spec: {schedulingGates: []}}"), lifts},
		"another mode":                      {merging("{metadata: {labels: {conch.dev/singleton: leader}}}"), marks},
		"another lock":                      {merging("{metadata: {annotations: {conch.dev/lock: free}}}"), marks},
		"the annotation alone":              {merging("{metadata: {annotations: {conch.dev/singleton: leader}}}"), marks},
		"the label through the status":      {merging("{metadata: {labels: {conch.dev/singleton: null}}}", "status"), marks},
		"the role":                          {merging("{metadata: {labels: {conch.dev/role: leader}}}"), leads},
		"the role through the status":       {merging("{metadata: {labels: {conch.dev/role: leader}}}", "status"), leads},
		"the token":                         {merging("{metadata: {annotations: {conch.dev/fencing-token: '1'}}}"), records},
		"an empty token":                    {merging("{metadata: {annotations: {conch.dev/fencing-token: ''}}}"), records},
		"the token through the status":      {merging("{metadata: {annotations: {conch.dev/fencing-token: '1'}}}", "status"), records},
		"the end of a tenure":               {merging("{metadata: {annotations: {conch.dev/ended: '1'}}}"), records},
		"an override without the right":     {merging("{metadata: {annotations: {conch.dev/override: me}}, spec: {schedulingGates: []}}"), lifts},
		"an override without a gate lifted": {merging("{metadata: {annotations: {conch.dev/override: me}}}"), "takes the verb override"},
		"an upper-case key":                 {merging("{metadata: {annotations: {conch.dev/Fencing-Token: '1'}}}"), "unknown annotation conch.dev/Fencing-Token"},
		"an upper-case domain":              {merging("{metadata: {labels: {Conch.dev/role: leader}}}"), ""},
		"the status alone":                  {merging("{spec: {schedulingGates: []}}", "status"), ""},
		"an ephemeral container":            {merging("{spec: {schedulingGates: [], ephemeralContainers: [{name: e, image: e}]}}", "ephemeralcontainers"), ""},
		"a resize":                          {merging("{spec: {schedulingGates: []}}", "resize"), ""},
		"an owner that is a Job": {
			merging("{metadata: {ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}]}}"), ""},
		"an owner that is a Job, then the gate": {
			inTurn(merging("{metadata: {ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}]}}"), merging(liftMerge)), lifts},
		"an update": {func(u *user, o *unstructured.Unstructured) error {
			next := u.now(o)
			unstructured.RemoveNestedField(next.Object, "spec", "schedulingGates")
			return u.Update(u.t.Context(), next)
		}, lifts},
		"a server-side apply that forces": {func(u *user, o *unstructured.Unstructured) error {
			next := u.object(pod("name: "+o.GetName()+", labels: {conch.dev/singleton: leader}", plainSpec))
			return u.Apply(u.t.Context(), client.ApplyConfigurationFromUnstructured(next), client.ForceOwnership, client.FieldOwner("thief"))
		}, marks},
		"a binding to a node": {func(u *user, o *unstructured.Unstructured) error {
			return u.SubResource("binding").Create(u.t.Context(), o.DeepCopy(), u.object(
				"{apiVersion: v1, kind: Binding, metadata: {name: "+o.GetName()+"}, target: {kind: Node, name: node-1}}"))
		}, "has non-empty .spec.schedulingGates"},
		"a binding with the token": {func(u *user, o *unstructured.Unstructured) error {
			return u.SubResource("binding").Create(u.t.Context(), o.DeepCopy(), u.object(
				"{apiVersion: v1, kind: Binding, metadata: {name: "+o.GetName()+", annotations: {conch.dev/fencing-token: '1'}}, target: {kind: Node, name: node-1}}"))
		}, "a Binding carries no marks"},
	}
}

func jobAttempts() map[string]attempt {
	return map[string]attempt{
		"a merge patch": {merging("{spec: {suspend: false}}"), resumes},
		"a null":        {merging("{spec: {suspend: null}}"), resumes},
		"a JSON patch":  {patching(types.JSONPatchType, `[{"op":"replace","path":"/spec/suspend","value":false}]`), resumes},
		"resuming and unmarking in one patch": {
			merging(`{metadata: {labels: {conch.dev/singleton: null}, annotations: {conch.dev/singleton: null}}, spec: {suspend: false,
			template: {metadata: {labels: {conch.dev/singleton: null}, annotations: {conch.dev/singleton: null}}}}}`), resumes},
		"the label first, then the resumption": {
			inTurn(merging("{metadata: {labels: {conch.dev/singleton: null}}}"), merging("{spec: {suspend: false}}")), resumes},
		// The API server fills the labels of a Job that has none from its template.
		"the label":                     {merging("{metadata: {labels: {conch.dev/singleton: null}}}"), ""},
		"the label for another":         {merging("{metadata: {labels: {conch.dev/singleton: null, a: b}}}"), marks},
		"the label through the status":  {merging("{metadata: {labels: {conch.dev/singleton: null}}}", "status"), ""},
		"the resumption through status": {merging("{spec: {suspend: false}}", "status"), ""},
		"the template's label":          {merging("{spec: {template: {metadata: {labels: {conch.dev/singleton: null}}}}}"), marks},
		"the template's token":          {merging("{spec: {template: {metadata: {annotations: {conch.dev/fencing-token: '1'}}}}}"), records},
		"the Job's own token":           {merging("{metadata: {annotations: {conch.dev/fencing-token: '1'}}}"), records},
		"another lock":                  {merging("{metadata: {annotations: {conch.dev/lock: free}}}"), marks},
		"an override without the right": {merging("{metadata: {annotations: {conch.dev/override: me}}, spec: {suspend: false}}"), resumes},
		"more parallelism":              {merging("{spec: {parallelism: 3}}"), ""},
		"a queue of Kueue":              {merging("{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}}"), "Kueue and conch would both suspend"},
		"a server-side apply that forces": {func(u *user, o *unstructured.Unstructured) error {
			next := u.object("{apiVersion: batch/v1, kind: Job, metadata: {name: " + o.GetName() + "}, spec: {suspend: false}}")
			return u.Apply(u.t.Context(), client.ApplyConfigurationFromUnstructured(next), client.ForceOwnership, client.FieldOwner("thief"))
		}, resumes},
	}
}

// C147: the right to write pods is not enough to lift the gate.
func TestANamespacesAdminFindsNoWayAroundAGate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.tryAll(podAttempts(), s.waiting)
}

// C147, for Jobs.
func TestANamespacesAdminFindsNoWayAroundASuspendedJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.tryAll(jobAttempts(), s.suspended)
}

func (s *stage) tryAll(attempts map[string]attempt, waiting func(name string) *unstructured.Unstructured) {
	names := map[string]string{}
	for name := range attempts {
		names[name] = "w" + string(rune('a'+len(names)/26)) + string(rune('a'+len(names)%26))
	}
	for name, a := range attempts {
		s.t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := waiting(names[name])
			err := a.try(s.admin, o)
			if a.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(a.want)))
			}
			after := s.root.now(o)
			g.Expect(waits(after)).To(BeTrue(), "waits no longer: %v", after.Object)
			for _, key := range []string{"conch.dev/fencing-token", "conch.dev/override", "conch.dev/ended"} {
				g.Expect(after.GetAnnotations()).NotTo(HaveKey(key))
			}
			g.Expect(after.GetAnnotations()).To(HaveKeyWithValue("conch.dev/lock", "one"))
			g.Expect(after.GetLabels()).NotTo(HaveKey("conch.dev/role"))
		})
	}
}

// What a namespace's admin creates waits as well, whatever it pretends to be, or it is refused.
func TestNothingMarkedIsMadeThatDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	byJob := "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}], "
	bySet := "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: j, uid: u, controller: true}], "
	cases := map[string]string{
		"a pod with the annotation only":         pod("name: a, "+exclusive, plainSpec),
		"a pod with the label only":              pod("name: b, "+exclusiveLabel, plainSpec),
		"a pod whose name is generated":          pod("generateName: g-, "+exclusive, plainSpec),
		"a pod of a Job that is none":            pod("name: c, "+byJob+exclusiveLabel, plainSpec),
		"a pod of a ReplicaSet that is none":     pod("name: d, "+bySet+exclusiveLabel, plainSpec),
		"a pod with another gate":                pod("name: e, "+exclusive, "{schedulingGates: [{name: example.com/g}], containers: [{name: c, image: c}]}"),
		"a Job with the annotation only":         job("name: a, "+exclusive, "", ""),
		"a Job with the label only":              job("name: b, "+exclusiveLabel, "", ""),
		"a Job with its pods marked only":        job("name: c", "suspend: false, ", exclusiveLabel),
		"a Job with its pods annotated only":     job("name: d", "", exclusive),
		"a Job that says it is not suspended":    job("name: e, "+exclusive, "suspend: false, ", ""),
		"a Job whose name is generated":          job("generateName: g-, "+exclusive, "", ""),
		"a Job whose pods may overlap with dead": job("name: f, "+exclusive, "podReplacementPolicy: TerminatingOrFailed, ", ""),
	}
	for name, doc := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := s.admin.made(doc)
			g.Expect(waits(o)).To(BeTrue(), "%v", o.Object)
			if o.GetKind() == "Job" {
				g.Expect(at(o, "spec", "podReplacementPolicy")).To(Equal("Failed"))
			}
		})
	}
	t.Run("a pod on a node of its choice", func(t *testing.T) {
		err := s.admin.apply(pod("name: bound, "+exclusive, "{nodeName: node-1, containers: [{name: c, image: c}]}"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot be set until all schedulingGates have been cleared")))
	})
	t.Run("a mark on a pod that runs", func(t *testing.T) {
		o := s.admin.made(pod("name: runs", plainSpec))
		NewWithT(t).Expect(s.admin.merge(o, "{metadata: {"+exclusiveLabel+"}}")).To(MatchError(ContainSubstring("was not made to wait")))
		NewWithT(t).Expect(s.admin.merge(o, "{metadata: {labels: {conch.dev/singleton: leader}}}")).To(Succeed())
	})
	t.Run("a mark on a Job that runs", func(t *testing.T) {
		o := s.admin.made(job("name: runs", "", ""))
		NewWithT(t).Expect(s.admin.merge(o, "{metadata: {"+exclusiveLabel+"}}")).To(MatchError(ContainSubstring("suspend it in the same request")))
	})
}

// The marks in a ReplicaSet's template are its Deployment's, and a pod that is deleted or evicted comes back gated.
func TestPodsOfADeploymentStayMarkedAndGated(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.admin.made(workload("Deployment", "name: a, "+exclusive, "", "", ""))
	app := client.MatchingLabels{"app": "a"}
	first := func(not types.UID) *unstructured.Unstructured {
		var found *unstructured.Unstructured
		s.Eventually(func() bool {
			for _, p := range s.pods(app) {
				if p.GetUID() != not && p.GetDeletionTimestamp() == nil {
					found = &p
				}
			}
			return found != nil
		}, within, look).Should(BeTrue())
		s.Expect(waits(found)).To(BeTrue())
		return found
	}
	p := first("")
	owner := p.GetOwnerReferences()[0]
	set := &unstructured.Unstructured{}
	set.SetAPIVersion("apps/v1")
	set.SetKind("ReplicaSet")
	set.SetNamespace(s.ns)
	set.SetName(owner.Name)
	err := s.admin.merge(set, "{spec: {template: {metadata: {labels: {conch.dev/singleton: null}}}}}")
	s.Expect(err).To(MatchError(ContainSubstring("come from its Deployment and change there")))

	s.Expect(s.admin.SubResource("eviction").Create(t.Context(), p.DeepCopy(), s.admin.object(
		"{apiVersion: policy/v1, kind: Eviction, metadata: {name: "+p.GetName()+"}}"))).To(Succeed())
	p = first(p.GetUID())
	s.Expect(s.admin.Delete(t.Context(), p)).To(Succeed())
	p = first(p.GetUID())

	deployment := set.DeepCopy()
	deployment.SetKind("Deployment")
	deployment.SetName("a")
	s.Expect(s.admin.merge(deployment, "{spec: {template: {metadata: {labels: {conch.dev/role: leader}}}}}")).To(MatchError(ContainSubstring(leads)))
	s.Expect(s.admin.merge(deployment, "{spec: {replicas: 2}}", "scale")).To(Succeed())
	s.Eventually(func() int { return len(s.pods(app)) }, within, look).Should(Equal(2))
	first(p.GetUID())
}
