package nodeagent

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// schedulers bind pods at the same time.
	schedulers = 4
	// noNodeRetry is when a pod that fits nowhere is looked at again.
	noNodeRetry = 200 * time.Millisecond
)

// scheduler binds the pods of its namespace to the nodes of its agent, in turn.
type scheduler struct {
	client kubernetes.Interface
	pods   corev1listers.PodLister
	nodes  corev1listers.NodeLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	turn   atomic.Uint32
}

func newScheduler(client kubernetes.Interface, pods corev1listers.PodLister, nodes corev1listers.NodeLister) *scheduler {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second)
	return &scheduler{client: client, pods: pods, nodes: nodes, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// wants tells whether a pod is to be bound. Gated pods are left alone; the API server would refuse them.
func wants(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0 && pod.DeletionTimestamp == nil &&
		pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

func (s *scheduler) run(ctx context.Context) {
	for {
		name, stop := s.queue.Get()
		if stop {
			return
		}
		s.schedule(ctx, name)
		s.queue.Done(name)
	}
}

func (s *scheduler) schedule(ctx context.Context, name cache.ObjectName) {
	pod, err := s.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil || !wants(pod) {
		s.queue.Forget(name)
		return
	}
	node, found := s.pick(pod)
	if !found {
		s.queue.AddAfter(name, noNodeRetry)
		return
	}
	if err := s.bind(ctx, pod, node); err != nil {
		klog.FromContext(ctx).V(1).Info("binding refused", "pod", name, "node", node, "reason", err.Error())
		s.queue.AddRateLimited(name)
		return
	}
	s.queue.Forget(name)
}

func (s *scheduler) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	return s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

// pick takes the next node in turn whose labels, taints and cordon let the pod in.
func (s *scheduler) pick(pod *corev1.Pod) (string, bool) {
	nodes, err := s.nodes.List(labels.SelectorFromSet(pod.Spec.NodeSelector))
	if err != nil {
		return "", false
	}
	nodes = slices.DeleteFunc(nodes, func(n *corev1.Node) bool { return n.Spec.Unschedulable || !tolerated(klog.Background(), pod, n) })
	if len(nodes) == 0 {
		return "", false
	}
	slices.SortFunc(nodes, byName)
	return nodes[int(s.turn.Add(1)-1)%len(nodes)].Name, true
}

func byName(a, b *corev1.Node) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// tolerated tells whether the pod bears all taints that keep pods away.
func tolerated(logger klog.Logger, pod *corev1.Pod, n *corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		bears := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logger, &taint, false) })
		if !bears {
			return false
		}
	}
	return true
}
