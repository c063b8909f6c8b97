package workloads

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
)

// neighbourAdvice is about other people's objects that do not go with one running pod. They are listed at
// the API server when the workload changes and now and then, because a watch would keep all of them.
func (r *Reconciler) neighbourAdvice(ctx context.Context, s *subject) ([]advice, error) {
	if s.mode() != lockv1alpha1.SingletonExclusive || s.kind != "Deployment" && s.kind != "StatefulSet" {
		return nil, nil
	}
	in := client.InNamespace(s.object.GetNamespace())
	var scalers autoscalingv2.HorizontalPodAutoscalerList
	if err := r.opts.APIReader.List(ctx, &scalers, in); err != nil {
		return nil, fmt.Errorf("list the autoscalers of namespace %s: %w", s.object.GetNamespace(), err)
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.opts.APIReader.List(ctx, &budgets, in); err != nil {
		return nil, fmt.Errorf("list the disruption budgets of namespace %s: %w", s.object.GetNamespace(), err)
	}
	return append(scalerAdvice(s, scalers.Items), budgetAdvice(s, budgets.Items)...), nil
}

func scalerAdvice(s *subject, scalers []autoscalingv2.HorizontalPodAutoscaler) []advice {
	var out []advice
	for i := range scalers {
		if ref := scalers[i].Spec.ScaleTargetRef; ref.Kind == s.kind && ref.Name == s.object.GetName() {
			out = append(out, advice{warning, "AutoscalerWithoutEffect", check, fmt.Sprintf(
				"HorizontalPodAutoscaler %s adds replicas that wait for the lock and take no load: delete it, or write %s: leader or active-passive",
				scalers[i].Name, lockv1alpha1.AnnotationSingleton)})
		}
	}
	return out
}

// budgetAdvice is for budgets that never let the one pod that runs be evicted. Replicas that wait count as
// unhealthy, so even maxUnavailable: 1 blocks a drain where there are two.
func budgetAdvice(s *subject, budgets []policyv1.PodDisruptionBudget) []advice {
	var out []advice
	for i := range budgets {
		b := &budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(s.template.Labels)) || healthyNeeded(b, int(s.replicas)) < 1 {
			continue
		}
		out = append(out, advice{warning, "DrainBlocked", check, fmt.Sprintf(
			"PodDisruptionBudget %s never lets the one pod that runs be evicted, so draining its node waits for ever: write maxUnavailable: 100%% in it",
			b.Name)})
	}
	return out
}

// healthyNeeded is how many pods must stay healthy, as the disruption controller counts.
func healthyNeeded(b *policyv1.PodDisruptionBudget, replicas int) int {
	of := func(v *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(v, replicas, true)
		if err != nil {
			return 0
		}
		return n
	}
	switch {
	case b.Spec.MaxUnavailable != nil:
		return replicas - of(b.Spec.MaxUnavailable)
	case b.Spec.MinAvailable != nil:
		return of(b.Spec.MinAvailable)
	}
	return 0
}
