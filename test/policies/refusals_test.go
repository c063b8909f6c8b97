package policies

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatWouldGoWrongIsRefusedWithWhatToWrite(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	byJobs := "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}], "
	cases := map[string]struct{ doc, want string }{
		"a misspelt annotation": {
			workload("Deployment", "name: a, annotations: {conch.dev/singelton: leader}", "", "", ""), "unknown annotation conch.dev/singelton: write conch.dev/singleton"},
		"an annotation with capitals in its domain": {
			workload("Deployment", "name: a, annotations: {Conch.dev/singleton: leader}", "", "", ""), "unknown annotation Conch.dev/singleton: write conch.dev/singleton"},
		"capitals in the domain of a template's annotation": {
			workload("Deployment", "name: a", "", "", "CONCH.DEV/singleton: exclusive"), "unknown annotation CONCH.DEV/singleton: write conch.dev/singleton"},
		"capitals in the domain of a Job's annotation": {
			job("name: a, annotations: {conch.Dev/singleton: exclusive}", "", ""), "unknown annotation conch.Dev/singleton: write conch.dev/singleton"},
		"a label with capitals in its domain, which the API server takes for none": {
			workload("Deployment", "name: a", "", ", Conch.dev/singleton: leader", ""), "prefix part a lowercase RFC 1123 subdomain"},
		"a misspelt annotation in a template": {
			workload("StatefulSet", "name: a", "serviceName: a, ", "", "conch.dev/Singleton: leader"), "unknown annotation conch.dev/Singleton"},
		"a misspelt label in a template": {
			workload("Deployment", "name: a", "", ", conch.dev/singelton: leader", ""), "unknown label conch.dev/singelton: the label that marks a pod template is conch.dev/singleton"},
		"a misspelt annotation in a Job template": {
			cronJob("name: a", "", "annotations: {conch.dev/locks: a}", ""), "unknown annotation conch.dev/locks"},
		"an operator's order on a workload": {
			workload("Deployment", "name: a, annotations: {conch.dev/release: '1'}", "", "", ""), "belong on the DistributedLock"},
		"a wrong mode": {
			workload("Deployment", "name: a, annotations: {conch.dev/singleton: Leader}", "", "", ""), "must be leader, exclusive or active-passive, not 'Leader'"},
		"a wrong mode that is no label either": {
			workload("Deployment", "name: a, annotations: {conch.dev/singleton: 'one at a time'}", "", "", ""), "must be leader, exclusive or active-passive, not 'one at a time'"},
		"an empty mode": {
			workload("Deployment", "name: a, annotations: {conch.dev/singleton: ''}", "", "", ""), "must be leader, exclusive or active-passive"},
		"a wrong mode in a template's label": {
			workload("Deployment", "name: a", "", ", conch.dev/singleton: Exclusive", ""), "must be leader, exclusive or active-passive, not 'Exclusive'"},
		"a wrong mode on a pod": {
			pod("name: a, labels: {conch.dev/singleton: single}", plainSpec), "must be leader, exclusive or active-passive, not 'single'"},
		"a lock that cannot be one's name": {
			workload("Deployment", "name: a, annotations: {conch.dev/singleton: leader, conch.dev/lock: other/lock}", "", "", ""), "name of a DistributedLock in this namespace, not 'other/lock'"},
		"a DaemonSet": {
			workload("DaemonSet", "name: a, annotations: {conch.dev/singleton: leader}", "", "", ""), "a DaemonSet runs on every node"},
		"a DaemonSet's template": {
			workload("DaemonSet", "name: a", "", ", conch.dev/singleton: leader", ""), "mark a Deployment instead"},
		"a bare ReplicaSet": {
			workload("ReplicaSet", "name: a", "", ", conch.dev/singleton: leader", ""), "bare ReplicaSet: mark a Deployment instead"},
		"a Job with a manager of its own": {
			job("name: a, "+exclusive, "managedBy: example.com/m, ", ""), "spec.managedBy gives that to another controller"},
		"a CronJob whose Jobs have a manager of their own": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, annotations: {conch.dev/singleton: exclusive}}, spec: {timeZone: Etc/UTC,
			schedule: "0 0 1 1 *", jobTemplate: {spec: {managedBy: example.com/m, template: {spec: ` + plainSpec + `}}}}}`, "spec.managedBy gives that to another controller"},
		"a Job in a queue of Kueue": {
			job("name: a, labels: {kueue.x-k8s.io/queue-name: q}, "+exclusive, "", ""), "Kueue and conch would both suspend"},
		"an active-passive Job":     {job("name: a, annotations: {conch.dev/singleton: active-passive}", "", ""), "write conch.dev/singleton: exclusive"},
		"an active-passive CronJob": {cronJob("name: a, annotations: {conch.dev/singleton: active-passive}", "", "", ""), "write conch.dev/singleton: exclusive"},
		"an active-passive pod":     {pod("name: a, annotations: {conch.dev/singleton: active-passive}", plainSpec), "write conch.dev/singleton: exclusive"},
		"a pod whose label and annotation differ": {
			pod("name: a, labels: {conch.dev/singleton: leader}, "+exclusive, gatedSpec), "add metadata.labels {conch.dev/singleton: exclusive}"},
		"a Job's template with a gate": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {conch.dev/singleton: exclusive}}, spec: {template: {spec:
			{restartPolicy: Never, schedulingGates: [{name: conch.dev/lock}], containers: [{name: c, image: c}]}}}}`, "take the gate conch.dev/lock out"},
		"a pod that says it leads": {pod("name: a, labels: {conch.dev/role: leader}", plainSpec), "only conch writes the label conch.dev/role"},
		"a pod that says it holds": {pod("name: a, annotations: {conch.dev/fencing-token: '9'}", plainSpec), "only conch writes the annotations conch.dev/fencing-token"},
		"a pod of a false Job that says it holds": {
			pod(byJobs+"name: a, annotations: {conch.dev/fencing-token: '9'}", plainSpec), "only conch writes the annotations conch.dev/fencing-token"},
		"a template that says its pods lead": {
			workload("Deployment", "name: a", "", ", conch.dev/role: leader", ""), "take it out of the template. A Service selects by it"},
		"a template that says its pods hold": {
			workload("StatefulSet", "name: a", "serviceName: a, ", "", "conch.dev/holder-identity: me"), "take them out of the object and its template"},
		"a Job template that says its Jobs hold": {cronJob("name: a", "", "annotations: {conch.dev/key: k}", ""), "take them out of the object and its template"},
		"a pod template of a CronJob that says so": {
			cronJob("name: a", "", "", "annotations: {conch.dev/fencing-token: '1'}"), "take them out of the object and its template"},
		"a Job that says it holds": {job("name: a, annotations: {conch.dev/ended: '1'}", "", ""), "only conch writes the annotations conch.dev/fencing-token"},
		"a Job whose template says so": {
			job("name: a", "", "annotations: {conch.dev/fencing-token: '1'}"), "only conch writes the annotations conch.dev/fencing-token"},
		"a template with an override": {
			workload("Deployment", "name: a", "", "", "conch.dev/override: always"), "has no place in a template"},
		"an override without the right to it": {
			pod("name: a, annotations: {conch.dev/override: please}", plainSpec), "takes the verb override on distributedlocks"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := s.admin.apply(tc.doc)
			if err == nil {
				t.Fatalf("went through:\n%s", tc.doc)
			}
			NewWithT(t).Expect(err.Error()).To(ContainSubstring(tc.want))
		})
	}
}

func TestWhatDoesNotDoAsOneMightExpectIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cases := map[string]struct {
		doc  string
		want []string
	}{
		"several exclusive replicas": {
			workload("Deployment", "name: a, "+exclusive, "replicas: 3, ", "", ""), []string{"of 3 replicas the others wait as SchedulingGated"}},
		"several exclusive replicas by the template's label": {
			workload("Deployment", "name: b", "replicas: 2, ", ", conch.dev/singleton: exclusive", ""), []string{"of 2 replicas"}},
		"several exclusive replicas of a StatefulSet, one after the other": {
			workload("StatefulSet", "name: a, "+exclusive, "serviceName: a, replicas: 2, ", "", ""), []string{"of 2 replicas", "with more than one exclusive replica it hangs"}},
		"several exclusive replicas of a StatefulSet at once": {
			workload("StatefulSet", "name: b, "+exclusive, "serviceName: a, podManagementPolicy: Parallel, replicas: 2, ", "", ""), []string{"of 2 replicas"}},
		"a label in the annotation's place": {
			workload("Deployment", "name: c, labels: {conch.dev/singleton: leader}", "", "", ""), []string{"on a workload itself does nothing"}},
		"a schedule that differs from cluster to cluster": {
			cronJob("name: a, "+exclusive, `schedule: "@every 1h",`, "", ""), []string{"@every counts from the CronJob's creation"}},
		"a schedule without time zone": {
			cronJob("name: b, "+exclusive, `timeZone: null,`, "", ""), []string{"such as timeZone: Etc/UTC"}},
		"one exclusive replica":                       {workload("Deployment", "name: d, "+exclusive, "", "", ""), nil},
		"a rolling update, which conch hands over in": {workload("Deployment", "name: e, "+exclusive, "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, ", "", ""), nil},
		"several replicas of which one leads":         {workload("Deployment", "name: f, annotations: {conch.dev/singleton: leader}", "replicas: 3, ", "", ""), nil},
		"several replicas in one cluster":             {workload("StatefulSet", "name: g, annotations: {conch.dev/singleton: active-passive}", "serviceName: a, replicas: 3, ", "", ""), nil},
		"a CronJob as it should be":                   {cronJob("name: c, "+exclusive, "", "", ""), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := s.as(s.admin.name)
			g.Expect(u.apply(tc.doc)).To(Succeed())
			got := u.warnings()
			g.Expect(got).To(HaveLen(len(tc.want)), "%q", got)
			for i, want := range tc.want {
				g.Expect(got[i]).To(ContainSubstring(want))
			}
		})
	}
}

func TestAnOrderToALockThatIsNoneIsRefusedWithWhatToWrite(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, tc := range map[string]struct{ doc, want string }{
		"an order with capitals in its domain": {
			`{apiVersion: conch.dev/v1alpha1, kind: DistributedLock, metadata: {name: a, annotations: {Conch.dev/release: "1"}}}`, "unknown annotation Conch.dev/release: on a DistributedLock write conch.dev/release"},
		"a misspelt order to a lock": {
			`{apiVersion: conch.dev/v1alpha1, kind: DistributedLock, metadata: {name: a, annotations: {conch.dev/relase: "1"}}}`, "unknown annotation conch.dev/relase: on a DistributedLock write conch.dev/release"},
		"a mark on a lock": {
			`{apiVersion: conch.dev/v1alpha1, kind: DistributedLock, metadata: {name: a, annotations: {conch.dev/singleton: leader}}}`, "marks belong on the workload"},
		"an order that names no fencing token": {
			`{apiVersion: conch.dev/v1alpha1, kind: DistributedLock, metadata: {name: a, annotations: {conch.dev/release: "yes"}}}`, "conch.dev/release: write the present fencing token"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(s.root.apply(tc.doc)).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
