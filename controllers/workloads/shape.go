package workloads

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/pkg/lock"
)

const defaultTTL = 60 * time.Second

// shapeAdvice is about a workload's own fields.
func shapeAdvice(s *subject, clusterSet string) []advice {
	exclusive := s.mode() == lockv1alpha1.SingletonExclusive
	var out []advice
	if exclusive && s.replicas > 1 {
		out = append(out, advice{normal, "ReplicasWait", waits, fmt.Sprintf(
			"of %d exclusive replicas one runs and the others wait, on no node; they count in quotas, and the workload is never fully available: write replicas: 1 unless you want that",
			s.replicas)})
	}
	if exclusive && s.replicas > 1 && s.ordered {
		out = append(out, advice{
			warning, "OrderedReady", waits,
			"with podManagementPolicy OrderedReady the second pod is made only while the first one runs, so none stands by when that is lost: write podManagementPolicy: Parallel",
		})
	}
	return append(out, scheduleAdvice(s, clusterSet)...)
}

// scheduleAdvice is about schedules that mean different minutes in the clusters that share them.
func scheduleAdvice(s *subject, clusterSet string) []advice {
	switch {
	case s.schedule == "" || clusterSet == "" || s.mode() != lockv1alpha1.SingletonExclusive:
		return nil
	case strings.HasPrefix(strings.TrimSpace(s.schedule), "@every"):
		return []advice{{
			warning, "ScheduleDiffers", check,
			"@every counts from when this CronJob was made, so each cluster has its own minutes and a run is not recognised as the same: write minutes and hours, such as 0 * * * *",
		}}
	case !s.timeZone:
		return []advice{{
			warning, "TimeZoneMissing", check,
			"without timeZone each cluster reads the schedule in its control plane's own zone: write spec.timeZone, such as Etc/UTC",
		}}
	}
	return nil
}

// graceAdvice is for pods that may be killed before they have finished stopping, because a lost lock ends
// sooner than they were promised.
func graceAdvice(s *subject, l *lockv1alpha1.DistributedLock) []advice {
	asked := s.template.Spec.TerminationGracePeriodSeconds
	if l == nil || asked == nil || s.mode() == "" {
		return nil
	}
	grace, t := time.Duration(*asked)*time.Second, timing(l)
	if grace <= t.FenceGrace {
		return nil
	}
	severity := warning
	if *asked == corev1.DefaultTerminationGracePeriodSeconds {
		severity = normal // nobody asked for it
	}
	longer := t
	longer.FenceGrace = grace
	write := fmt.Sprintf("fenceGrace: %s", grace)
	if longer.Validate() != nil {
		write += fmt.Sprintf(" and ttl: %s", 2*grace)
	}
	return []advice{{severity, "GraceCut", check, fmt.Sprintf(
		"terminationGracePeriodSeconds is %d, but when the lock is lost the process gets fenceGrace, %s: write at most %d, or in DistributedLock %s %s",
		*asked, t.FenceGrace, int(t.FenceGrace.Seconds()), l.Name, write)}}
}

func timing(l *lockv1alpha1.DistributedLock) lock.Timing {
	given := func(d *metav1.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return d.Duration
	}
	t := lock.Timing{
		TTL: given(l.Spec.TTL), RenewInterval: given(l.Spec.RenewInterval), FenceGrace: given(l.Spec.FenceGrace),
		TakeoverDelay: given(l.Spec.TakeoverDelay),
	}
	if t.TTL == 0 {
		t.TTL = defaultTTL
	}
	return t.WithDefaults()
}
