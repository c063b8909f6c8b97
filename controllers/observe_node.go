package controllers

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/controllers/plan"
)

// readNodes adds what is known of the nodes of the holder and of every candidate that may work.
func (p *pass) readNodes(ctx context.Context) error {
	for i := range p.candidates {
		c := &p.candidates[i]
		holder := plan.Holder{}
		if p.ours() && c.UID == p.status.Holder.UID {
			holder = p.status.Holder
		}
		if c.Composite() {
			if err := p.addNodesOfMembers(ctx, c); err != nil {
				return err
			}
			continue
		}
		if holder.UID == "" && !c.Active() {
			continue
		}
		if err := p.addNode(ctx, c, holder); err != nil {
			return err
		}
	}
	return nil
}

// addNode adds what is known of the node that a candidate was bound to.
func (p *pass) addNode(ctx context.Context, c *plan.Candidate, h plan.Holder) error {
	name := c.NodeName
	if name == "" {
		name = h.Node
	}
	boot, err := p.addNodeOf(ctx, &c.Body, name, h.BootID, types.UID(c.UID))
	if boot != "" {
		c.BootID = boot
	}
	return err
}

// addNodesOfMembers does so for the pods of a composite candidate that may be working.
func (p *pass) addNodesOfMembers(ctx context.Context, c *plan.Candidate) error {
	for i := range c.Members {
		m := &c.Members[i]
		if m.Gated || m.Body.Stopped && !m.Body.Collected {
			continue
		}
		if _, err := p.addNodeOf(ctx, &m.Body, m.NodeName, "", types.UID(m.UID)); err != nil {
			return err
		}
	}
	return nil
}

// addNodeOf adds what is known of the node that a body is on, and returns the node's bootID.
func (p *pass) addNodeOf(ctx context.Context, b *plan.Body, name, bootID string, uid types.UID) (string, error) {
	if name == "" {
		return "", p.addUnknownNode(ctx, b)
	}
	var node corev1.Node
	err := p.r.opts.Client.Get(ctx, types.NamespacedName{Name: name}, &node)
	if apierrors.IsNotFound(err) {
		err = p.r.opts.APIReader.Get(ctx, types.NamespacedName{Name: name}, &node)
	}
	switch {
	case apierrors.IsNotFound(err):
		b.Node = nodeOf(nil, "")
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read node %s of the holder of lock %s: %w", name, p.name, err)
	}
	b.Node = nodeOf(&node, bootID)
	if !b.Exists {
		b.Node.HeardFirst, b.Node.HeardAt, err = p.heardOf(ctx, name, uid)
	}
	return node.Status.NodeInfo.BootID, err
}

// heardOf is when this process first and last saw the node's Lease change since it missed a candidate.
// What stood there at the first look says when the kubelet lived by its own clock, so it counts for
// nothing. After a gap in which beats were missed the count starts over: whatever cut the kubelet off
// may have kept the deletion from it too.
func (p *pass) heardOf(ctx context.Context, node string, uid types.UID) (first, last time.Time, err error) {
	var lease coordinationv1.Lease
	err = p.r.opts.APIReader.Get(ctx, types.NamespacedName{Namespace: corev1.NamespaceNodeLease, Name: node}, &lease)
	if apierrors.IsNotFound(err) {
		return time.Time{}, time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("read the heartbeat of node %s: %w", node, err)
	}
	was, known := p.mem.heard[uid]
	h := was.beat(known, timeOf(lease.Spec.RenewTime), leaseDuration(&lease), p.now)
	p.mem.heard[uid] = h
	return h.first, h.last, nil
}

// beat takes in what a Lease says at now.
func (h heartbeat) beat(known bool, renewed time.Time, duration time.Duration, now time.Time) heartbeat {
	switch {
	case !known:
		return heartbeat{renewed: renewed}
	case !renewed.After(h.renewed):
		return h
	case h.first.IsZero(), renewed.Sub(h.renewed) > duration*missedBeats/beatsPerLease:
		h.first = now
	}
	h.renewed, h.last = renewed, now
	return h
}

const (
	// A kubelet renews its Lease four times in the Lease's duration (NodeLeaseDurationSeconds and its
	// renewInterval in the kubelet's source). Two beats apart are a gap.
	beatsPerLease, missedBeats = 4, 2
	// kubeletLease is the kubelet's default, for a Lease that states no duration.
	kubeletLease = 40 * time.Second
)

func leaseDuration(l *coordinationv1.Lease) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return kubeletLease
}

// addUnknownNode judges a vanished holder that was never seen on a node: it may have been bound
// while nobody looked, so every node counts.
func (p *pass) addUnknownNode(ctx context.Context, b *plan.Body) error {
	if b.Exists {
		return nil
	}
	var nodes corev1.NodeList
	if err := p.r.opts.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	all := plan.Node{Ready: true, HeardAt: p.now, HeardFirst: b.VanishedAt}
	for i := range nodes.Items {
		n := nodeOf(&nodes.Items[i], "")
		all.Ready = all.Ready && n.Ready
		if n.ReadySince.After(all.ReadySince) {
			all.ReadySince = n.ReadySince
		}
	}
	b.Node = all
	return nil
}
