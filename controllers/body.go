package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conch-dev/conch/controllers/plan"
)

const (
	// podGCReason is the reason that the pod garbage collector gives when it ends a pod in place of
	// a kubelet. K/pkg/controller/podgc/gc_controller.go.
	podGCReason = "DeletionByPodGC"
	// defaultGrace is Kubernetes's own terminationGracePeriodSeconds.
	defaultGrace = corev1.DefaultTerminationGracePeriodSeconds * time.Second
)

// bodyOf reads off a pod whether its containers run. Node facts are added by the caller.
func bodyOf(pod *corev1.Pod, exists bool) plan.Body {
	b := plan.Body{
		Exists: exists, Known: true, Final: !exists,
		Bound:     pod.Spec.NodeName != "",
		Deleting:  pod.DeletionTimestamp != nil,
		Terminal:  pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Stopped:   allTerminated(pod),
		Collected: collected(pod),
		Grace:     graceOf(pod),
	}
	if b.Deleting {
		b.Deadline = pod.DeletionTimestamp.Time
	}
	return b
}

// allTerminated reports whether the kubelet has seen every container of the pod end: the ones of
// the spec have a status each, and every status says terminated. In a terminal phase a container
// that still waits never ran and never will: so ends a pod that is deleted while it initializes.
func allTerminated(pod *corev1.Pod) bool {
	statuses := pod.Status.ContainerStatuses
	if len(statuses) == 0 || len(statuses) < len(pod.Spec.Containers) {
		return false
	}
	terminal := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	for _, list := range [][]corev1.ContainerStatus{statuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			neverRan := terminal && s.State.Running == nil && s.LastTerminationState == corev1.ContainerState{}
			if s.State.Terminated == nil && !neverRan {
				return false
			}
		}
	}
	return true
}

func collected(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == podGCReason {
			return true
		}
	}
	return false
}

func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultGrace
}

// nodeOf reads off a node whether it can be relied on to end its pods. A nil node is one that does
// not exist.
func nodeOf(node *corev1.Node, bootID string) plan.Node {
	if node == nil {
		return plan.Node{Gone: true}
	}
	n := plan.Node{Rebooted: bootID != "" && node.Status.NodeInfo.BootID != "" && node.Status.NodeInfo.BootID != bootID}
	for _, t := range node.Spec.Taints {
		n.OutOfService = n.OutOfService || t.Key == corev1.TaintNodeOutOfService
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			n.Ready, n.ReadySince = true, c.LastTransitionTime.Time
		}
	}
	return n
}

// readiness returns whether a pod is ready and since when it has been so or not.
func readiness(pod *corev1.Pod) (bool, time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, pod.CreationTimestamp.Time
}
