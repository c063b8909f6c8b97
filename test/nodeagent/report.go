package nodeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// report is what a worker wants the API server to know: its own status, beside the pod as it saw it.
type report struct {
	pod      *corev1.Pod
	status   corev1.PodStatus
	finished bool
}

// writer brings reports of one pod to the API server. It runs beside the worker, so that a slow API server delays no SIGKILL.
type writer struct {
	agent   *Agent
	seen    *corev1.Pod // the newest state of the pod that we know
	deleted bool        // nothing is left to say
}

// report writes reports until ctx ends. While the node is silent it keeps the newest for later.
func (w *worker) report(ctx context.Context, reports <-chan report) {
	out := writer{agent: w.agent}
	var latest *report
	for {
		changed := w.agent.changes.wait()
		var retry <-chan time.Time
		if latest != nil && !w.node.silent() {
			if err := out.write(ctx, *latest); err != nil {
				retry = time.After(retryEvery)
			}
		}
		select {
		case <-ctx.Done():
			return
		case r := <-reports:
			latest = &r
		case <-changed:
		case <-retry:
		}
	}
}

// write patches the status if it differs, and then ends the pod's deletion if all is over.
func (o *writer) write(ctx context.Context, r report) error {
	if o.deleted {
		return nil
	}
	if o.seen == nil || newer(r.pod, o.seen) {
		o.seen = r.pod
	}
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	err := o.patch(ctx, merged(o.seen.Status, r.status))
	if err == nil && r.finished && o.seen.DeletionTimestamp != nil {
		err = o.remove(ctx)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another pod of that name: nothing of ours is left to write
		o.deleted = true
		return nil
	}
	return err
}

// patch writes what differs. It carries the UID and no resourceVersion, as a kubelet's does: it conflicts with another pod of that name
// and with nothing else.
func (o *writer) patch(ctx context.Context, want corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(o.seen.Status, want) {
		return nil
	}
	old, err := json.Marshal(&corev1.Pod{Status: o.seen.Status})
	if err != nil {
		return fmt.Errorf("encode the status seen: %w", err)
	}
	wanted, err := json.Marshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: o.seen.UID}, Status: want})
	if err != nil {
		return fmt.Errorf("encode the status wanted: %w", err)
	}
	body, err := strategicpatch.CreateTwoWayMergePatch(old, wanted, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("make a status patch: %w", err)
	}
	got, err := o.agent.client.CoreV1().Pods(o.seen.Namespace).Patch(
		ctx, o.seen.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("patch the status of %s: %w", o.seen.Name, err)
	}
	o.seen = got
	return nil
}

// remove is the kubelet's last word: the object may go.
func (o *writer) remove(ctx context.Context) error {
	now := int64(0)
	err := o.agent.client.CoreV1().Pods(o.seen.Namespace).Delete(ctx, o.seen.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &o.seen.UID},
	})
	if err != nil {
		return fmt.Errorf("end the deletion of %s: %w", o.seen.Name, err)
	}
	o.deleted = true
	return nil
}

// newer compares two states of one object.
func newer(a, b *corev1.Pod) bool {
	x, errX := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, errY := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return errX != nil || errY != nil || x > y
}
