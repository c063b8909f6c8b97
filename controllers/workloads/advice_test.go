package workloads

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// deployment is one with an exclusive template, changed by mods.
func deployment(mods ...func(*appsv1.Deployment)) *subject {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-1"}}
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Template.Labels = map[string]string{"app": "web", "conch.dev/singleton": "exclusive"}
	for _, mod := range mods {
		mod(d)
	}
	return subjectOf("Deployment", d)
}

func annotated(annotations map[string]string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations = annotations }
}

func replicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

func bare(d *appsv1.Deployment) { d.Spec.Template.Labels = nil }

func grace(n int64) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = &n }
}

func statefulSet(policy appsv1.PodManagementPolicyType) *subject {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	s.Spec.Replicas, s.Spec.PodManagementPolicy = ptr.To[int32](2), policy
	s.Spec.Template.Labels = map[string]string{"conch.dev/singleton": "exclusive"}
	return subjectOf("StatefulSet", s)
}

func cronJob(schedule string, zone *string) *subject {
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Annotations: map[string]string{"conch.dev/singleton": "exclusive"}}}
	c.Spec.Schedule, c.Spec.TimeZone = schedule, zone
	c.Spec.JobTemplate.Labels = map[string]string{"conch.dev/singleton": "exclusive"}
	return subjectOf("CronJob", c)
}

func TestMarksAreJudged(t *testing.T) {
	long := strings.Repeat("w", 245)
	tests := map[string]struct {
		s *subject
		// want are reasons, each with a part of the text.
		want map[string]string
	}{
		"marked by hand":                     {deployment(), nil},
		"marked by policy":                   {deployment(annotated(map[string]string{"conch.dev/singleton": "exclusive"})), nil},
		"nothing of conch's":                 {deployment(bare, annotated(map[string]string{"other.dev/lock": "x"})), nil},
		"a key misspelt":                     {deployment(bare, annotated(map[string]string{"conch.dev/singelton": "leader"})), map[string]string{"UnknownMark": "did you mean conch.dev/singleton?"}},
		"a key in capitals":                  {deployment(annotated(map[string]string{"conch.dev/Lock": "x"})), map[string]string{"UnknownMark": "did you mean conch.dev/lock?"}},
		"a key like no other":                {deployment(annotated(map[string]string{"conch.dev/replicas": "x"})), map[string]string{"UnknownMark": "write conch.dev/singleton, conch.dev/lock"}},
		"a mode misspelt":                    {deployment(bare, annotated(map[string]string{"conch.dev/singleton": "exlusive"})), map[string]string{"UnknownMark": "did you mean exclusive?"}},
		"an annotation that went no further": {deployment(bare, annotated(map[string]string{"conch.dev/singleton": "exclusive"})), map[string]string{"TemplateUnmarked": "schedulingGates"}},
		"a leader's needs no gate":           {deployment(bare, annotated(map[string]string{"conch.dev/singleton": "leader"})), map[string]string{"TemplateUnmarked": "labels: {conch.dev/singleton: leader}}}"}},
		"another mode than asked for":        {deployment(annotated(map[string]string{"conch.dev/singleton": "leader"})), map[string]string{"TemplateUnmarked": "leader"}},
		"a lock that the template lacks":     {deployment(annotated(map[string]string{"conch.dev/singleton": "exclusive", "conch.dev/lock": "shared"})), map[string]string{"TemplateUnmarked": "annotations: {conch.dev/lock: shared}"}},
		"a name that ReplicaSets cut":        {deployment(func(d *appsv1.Deployment) { d.Name = long }), map[string]string{"NameTooLong": "conch.dev/lock: deployment-www"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, markAdvice(tc.s), tc.want) })
	}
}

// expect compares reasons, and looks for a part of each text.
func expect(t *testing.T, got []advice, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, a := range got {
		if part, ok := want[a.reason]; !ok || !strings.Contains(a.text, part) {
			t.Errorf("got %s: %s, want %v", a.reason, a.text, want)
		}
		if len(a.text) > 1024 {
			t.Errorf("%s has %d bytes, more than an Event takes", a.reason, len(a.text))
		}
	}
}

func TestShapesAreJudged(t *testing.T) {
	tests := map[string]struct {
		s    *subject
		set  string
		want map[string]string
	}{
		"one exclusive replica":            {deployment(), "pair", nil},
		"two":                              {deployment(replicas(2)), "pair", map[string]string{"ReplicasWait": "replicas: 1"}},
		"a StatefulSet in order":           {statefulSet(appsv1.OrderedReadyPodManagement), "", map[string]string{"ReplicasWait": "", "OrderedReady": "Parallel"}},
		"a StatefulSet at once":            {statefulSet(appsv1.ParallelPodManagement), "", map[string]string{"ReplicasWait": ""}},
		"a schedule with a zone":           {cronJob("0 2 * * *", ptr.To("Etc/UTC")), "pair", nil},
		"a schedule without zone":          {cronJob("0 2 * * *", nil), "pair", map[string]string{"TimeZoneMissing": "spec.timeZone"}},
		"the same in a cluster of its own": {cronJob("0 2 * * *", nil), "", nil},
		"an interval":                      {cronJob("@every 1h", ptr.To("Etc/UTC")), "pair", map[string]string{"ScheduleDiffers": "0 * * * *"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { expect(t, shapeAdvice(tc.s, tc.set), tc.want) })
	}
}

func TestAGraceThatALostLockCutsIsTold(t *testing.T) {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Name: "web"}} // 60s: ten to stop
	tests := map[string]struct {
		s        *subject
		severity string
		part     string
	}{
		"as long as the lock allows":        {deployment(grace(10)), "", ""},
		"Kubernetes's default":              {deployment(grace(30)), corev1.EventTypeNormal, "fenceGrace: 30s"},
		"a minute, which needs another ttl": {deployment(grace(60)), corev1.EventTypeWarning, "fenceGrace: 1m0s and ttl: 2m0s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := graceAdvice(tc.s, l)
			if tc.part == "" {
				expect(t, got, nil)
				return
			}
			expect(t, got, map[string]string{"GraceCut": tc.part})
			if len(got) == 1 && got[0].severity != tc.severity {
				t.Errorf("got a %s Event, want a %s one", got[0].severity, tc.severity)
			}
		})
	}
}

func TestBudgetsThatBlockADrainAreTold(t *testing.T) {
	budget := func(app string, least, most *intstr.IntOrString) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, MinAvailable: least, MaxUnavailable: most,
		}}
	}
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	percent := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	tests := map[string]struct {
		replicas int32
		budget   policyv1.PodDisruptionBudget
		blocks   bool
	}{
		"one must be available": {1, budget("web", number(1), nil), true},
		"half must be":          {1, budget("web", percent("50%"), nil), true},
		"none must be":          {1, budget("web", number(0), nil), false},
		"one may be missing":    {1, budget("web", nil, number(1)), false},
		"one of two may, but one waits for the lock": {2, budget("web", nil, number(1)), true},
		"all may be missing":                         {2, budget("web", nil, percent("100%")), false},
		"somebody else's":                            {1, budget("other", number(1), nil), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := budgetAdvice(deployment(replicas(tc.replicas)), []policyv1.PodDisruptionBudget{tc.budget})
			if blocks := len(got) == 1; blocks != tc.blocks {
				t.Errorf("got %v, want blocked %t", got, tc.blocks)
			}
		})
	}
}

func TestAnAutoscalerOfTheWorkloadIsTold(t *testing.T) {
	scaler := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}
	expect(t, scalerAdvice(deployment(), []autoscalingv2.HorizontalPodAutoscaler{scaler}), map[string]string{"AutoscalerWithoutEffect": "web"})
	scaler.Spec.ScaleTargetRef.Name = "other"
	expect(t, scalerAdvice(deployment(), []autoscalingv2.HorizontalPodAutoscaler{scaler}), nil)
}

func TestAdviceIsToldOnceForAsLongAsItIsTrue(t *testing.T) {
	name, a, b := types.NamespacedName{Name: "web"}, advice{reason: "A"}, advice{reason: "B"}
	told := newTold()
	for i, step := range []struct {
		uid  types.UID
		all  []advice
		want []advice
	}{
		{"1", []advice{a}, []advice{a}}, {"1", []advice{a}, nil}, {"1", []advice{a, b}, []advice{b}},
		{"1", []advice{b}, nil}, {"1", []advice{a, b}, []advice{a}}, {"2", []advice{a}, []advice{a}}, {"2", nil, nil},
	} {
		got := told.fresh(name, step.uid, step.all)
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(advice{})); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	if len(told.of) != 0 {
		t.Errorf("remembers %v of what is no longer true", told.of)
	}
}

func TestANameThatPoliciesWriteIsTheWorkloadsOwn(t *testing.T) {
	lock := func(name string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"conch.dev/lock": name} }
	}
	tests := map[string]struct {
		s     *subject
		name  string
		named bool
	}{
		"none":                              {deployment(), "deployment-web", false},
		"its own":                           {deployment(lock("deployment-web")), "deployment-web", false},
		"another":                           {deployment(lock("shared")), "shared", true},
		"one that the template has not yet": {deployment(bare, annotated(map[string]string{"conch.dev/singleton": "leader", "conch.dev/lock": "shared"})), "shared", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, named := tc.s.lock(); got != tc.name || named != tc.named {
				t.Errorf("got %s, named %t; want %s, named %t", got, named, tc.name, tc.named)
			}
		})
	}
}
