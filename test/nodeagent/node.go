package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

const (
	// agentLabel marks the nodes of one agent, so that it watches no others.
	agentLabel = "nodeagent.conch.test/agent"
	// leaseSeconds is what kubelets announce.
	leaseSeconds = 40
	// requestWithin bounds every request of the agent: a paused API server must not stop it for good.
	requestWithin = 10 * time.Second
	// nodeIP is the made-up address of all nodes. A loopback address would be refused in EndpointSlices.
	nodeIP = "10.64.0.1"
)

// node is one machine of the agent.
type node struct {
	state
	name   string
	agent  string
	client kubernetes.Interface
	lister corev1listers.NodeLister
	lease  *coordinationv1.Lease // as last written; used by run only
}

// run registers the node and keeps its heartbeat until ctx ends.
func (n *node) run(ctx context.Context, changes *changes, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var registered string // the boot that did
	due := true
	for {
		changed := changes.wait()
		boot, _ := n.boot()
		if !n.silent() {
			if registered != boot && n.register(ctx) == nil {
				registered = boot
			}
			n.report(ctx, due)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			due = false
		case <-tick.C:
			due = true
		}
	}
}

// register creates the Node object, as a kubelet does once per boot.
func (n *node) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
		agentLabel: n.agent, corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux",
		// A zone per agent: what the node lifecycle controller does when most nodes of a zone are lost stays within one test.
		corev1.LabelTopologyZone: n.agent,
	}}}
	want.Status = n.status(metav1.Now())
	_, err := n.client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register node %s: %w", n.name, err)
	}
	return nil
}

// report renews the lease if it is due, and repairs the Node's status if somebody else changed it or the bootID is new. A request that
// fails is simply tried again at the next heartbeat, as a kubelet does.
func (n *node) report(ctx context.Context, due bool) {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	if due {
		n.renew(ctx)
	}
	seen, err := n.lister.Get(n.name)
	if err != nil {
		return
	}
	boot, _ := n.boot()
	if seen.Status.NodeInfo.BootID == boot && readyNode(seen) {
		return
	}
	patch, err := json.Marshal(&corev1.Node{Status: n.status(metav1.Now())})
	if err != nil {
		return
	}
	_, _ = n.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// renew writes the lease from which the node lifecycle controller takes that the node lives.
func (n *node) renew(ctx context.Context) {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	want := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: corev1.NamespaceNodeLease}}
	if n.lease != nil {
		want = n.lease.DeepCopy()
	}
	want.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	var err error
	if n.lease == nil {
		n.lease, err = leases.Create(ctx, want, metav1.CreateOptions{})
	} else {
		n.lease, err = leases.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err == nil {
		return
	}
	if n.lease, err = leases.Get(ctx, n.name, metav1.GetOptions{}); err != nil {
		n.lease = nil
	}
}

// remove takes the node out of the cluster.
func (n *node) remove(ctx context.Context) {
	_ = n.client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{})
	_ = n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.name, metav1.DeleteOptions{})
}

func (n *node) status(now metav1.Time) corev1.NodeStatus {
	boot, _ := n.boot()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("5000"),
	}
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP}, {Type: corev1.NodeHostName, Address: n.name}},
		NodeInfo: corev1.NodeSystemInfo{
			BootID: boot, MachineID: n.name, SystemUUID: n.name, KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
		},
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
			condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
		},
	}
}

func readyNode(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
