package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conch-dev/conch/controllers/plan"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func terminated() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func podOf(mods ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "team", UID: "uid-0"},
		Spec: corev1.PodSpec{
			NodeName: "node-0", TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers: []corev1.Container{{Name: "app"}},
		},
	}
	for _, mod := range mods {
		mod(p)
	}
	return p
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
func statuses(s ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = s }
}

func TestWhatAPodProvesAboutItsDeath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a running pod lives":                               {podOf(statuses(running())), false},
		"a crashed container of a pod that stays lives":     {podOf(statuses(terminated())), false},
		"a deletion that was only asked for proves nothing": {podOf(deleting, statuses(running())), false},
		"a deletion without any container status":           {podOf(deleting), false},
		"a deletion with every container terminated":        {podOf(deleting, statuses(terminated())), true},
		"a container without a status may still run":        {podOf(deleting, statuses(terminated()), func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}) }), false},
		"a sidecar that still runs":                         {podOf(deleting, statuses(terminated()), func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{running()} }), false},
		"an ephemeral container that still runs":            {podOf(deleting, statuses(terminated()), func(p *corev1.Pod) { p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{running()} }), false},
		"a pod deleted while it initialized, as its kubelet ends it": {podOf(deleting, statuses(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}),
			func(p *corev1.Pod) {
				p.Status.Phase, p.Status.InitContainerStatuses = corev1.PodFailed, []corev1.ContainerStatus{terminated()}
			}), true},
		"a pod that completed":                                  {podOf(statuses(terminated()), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), true},
		"a pod that the garbage collector declared failed":      {podOf(statuses(terminated()), collectedPod), false},
		"a pod that failed without having run a container":      {podOf(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"a failed pod whose container is said to run still may": {podOf(statuses(running()), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := plan.Dead(noon, bodyOf(tc.pod, true), 10*time.Second, false)
			if got.Confirmed != tc.want {
				t.Errorf("confirmed %t (%s), want %t", got.Confirmed, got.Why, tc.want)
			}
		})
	}
}

func collectedPod(p *corev1.Pod) {
	p.Status.Phase = corev1.PodFailed
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: podGCReason}}
}

func TestWhatANodeProves(t *testing.T) {
	t.Parallel()
	ready := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-1"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Time{Time: noon}}},
		}}
	}
	tainted := ready(corev1.ConditionFalse)
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}
	tests := map[string]struct {
		node *corev1.Node
		boot string
		want plan.Node
	}{
		"a node without object is gone":                {nil, "", plan.Node{Gone: true}},
		"a ready node":                                 {ready(corev1.ConditionTrue), "boot-1", plan.Node{Ready: true, ReadySince: noon}},
		"a node that nobody hears of":                  {ready(corev1.ConditionUnknown), "boot-1", plan.Node{}},
		"another boot than the holder's":               {ready(corev1.ConditionTrue), "boot-0", plan.Node{Ready: true, ReadySince: noon, Rebooted: true}},
		"a holder whose boot is not known":             {ready(corev1.ConditionTrue), "", plan.Node{Ready: true, ReadySince: noon}},
		"a node that the operator took out of service": {tainted, "boot-1", plan.Node{OutOfService: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nodeOf(tc.node, tc.boot)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
