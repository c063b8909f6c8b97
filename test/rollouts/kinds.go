package main

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// kind is one way to run and to roll a singleton.
type kind struct {
	name     string
	mode     string
	replicas int32
	strategy appsv1.DeploymentStrategy
	// set is for a StatefulSet instead of a Deployment.
	set *appsv1.StatefulSetSpec
}

// kinds are all that conch promises to roll without overlap and without getting stuck.
func kinds() []kind {
	rolling := appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
	noSurge := appsv1.DeploymentStrategy{Type: rolling.Type, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
	}}
	return []kind{
		{name: "leader-rolling", mode: lockv1alpha1.SingletonLeader, replicas: 2, strategy: rolling},
		{name: "exclusive-rolling", mode: lockv1alpha1.SingletonExclusive, replicas: 1, strategy: rolling},
		{name: "exclusive-standbys", mode: lockv1alpha1.SingletonExclusive, replicas: 3, strategy: rolling},
		{name: "exclusive-no-surge", mode: lockv1alpha1.SingletonExclusive, replicas: 1, strategy: noSurge},
		{name: "exclusive-recreate", mode: lockv1alpha1.SingletonExclusive, replicas: 1, strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RecreateDeploymentStrategyType,
		}},
		{name: "active-passive", mode: lockv1alpha1.SingletonActivePassive, replicas: 2, strategy: rolling},
		{name: "exclusive-set", mode: lockv1alpha1.SingletonExclusive, replicas: 1, set: &appsv1.StatefulSetSpec{}},
		{name: "exclusive-set-parallel", mode: lockv1alpha1.SingletonExclusive, replicas: 2, set: &appsv1.StatefulSetSpec{
			PodManagementPolicy: appsv1.ParallelPodManagement,
		}},
	}
}

// selector is how the pods of a kind are found.
func (k kind) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": k.name}}
}
