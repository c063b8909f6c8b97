package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conch-dev/conch/controllers/plan"
)

// TestOnlyProofIsDeath goes through what counts as death, one rule after the other, and what looks
// like it. Cases C31 and C39.
func TestOnlyProofIsDeath(t *testing.T) {
	well := plan.Node{Ready: true, ReadySince: in(-time.Hour), HeardFirst: in(-time.Hour), HeardAt: now}
	back := plan.Node{Ready: true, ReadySince: in(-10 * time.Second), HeardFirst: in(-10 * time.Second), Rebooted: true}
	tests := map[string]struct {
		body      plan.Body
		confirmed bool
		want      plan.Death
	}{
		"a pod that runs is alive": {
			body: plan.Body{Exists: true, Bound: true, Node: well},
			want: plan.Death{Why: "it has not stopped"},
		},
		"a pod that is being deleted is alive": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Deadline: in(-time.Hour), Node: well},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(a) a pod that was never bound is dead once it is deleted": {
			body: plan.Body{Final: true, Known: true},
			want: plan.Death{Confirmed: true, Why: "it was never bound to a node"},
		},
		"(a) a gated pod that still exists is not dead": {
			body: plan.Body{Exists: true, Deleting: true},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(a) a vanished pod of which nobody saw the last state may have been bound": {
			body: plan.Body{Known: true, VanishedAt: in(-time.Hour)},
			want: plan.Death{Why: "it vanished and its node is not ready"},
		},
		"(b) a terminal pod whose containers, init ones too, have terminated is dead": {
			body: plan.Body{Exists: true, Bound: true, Terminal: true, Stopped: true, Node: well},
			want: plan.Death{Confirmed: true, Why: "every container has terminated"},
		},
		"(b) a deleted pod whose containers have terminated is dead, held by a finalizer or not": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Stopped: true, Node: well},
			want: plan.Death{Confirmed: true, Why: "every container has terminated"},
		},
		"(b) it is dead although its node does not answer any more": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Stopped: true},
			want: plan.Death{Confirmed: true, Why: "every container has terminated"},
		},
		"(b) a vanished pod that had shown its end is dead at once": {
			body: plan.Body{Final: true, Bound: true, Deleting: true, Stopped: true, VanishedAt: now},
			want: plan.Death{Confirmed: true, Why: "every container has terminated"},
		},
		"(b) a pod that restarts its containers is alive between two of them": {
			body: plan.Body{Exists: true, Bound: true, Stopped: true, Node: well},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(b) a terminal pod with an init container that still runs is alive": {
			body: plan.Body{Exists: true, Bound: true, Terminal: true, Node: well},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(b) an end that the garbage collector wrote proves nothing": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Terminal: true, Stopped: true, Collected: true},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(b) nor does it once the pod is gone": {
			body: plan.Body{Final: true, Bound: true, Deleting: true, Terminal: true, Stopped: true, Collected: true, VanishedAt: in(-time.Hour)},
			want: plan.Death{Why: "it vanished and its node is not ready"},
		},
		"(c) a pod removed by force may run until its grace is over": {
			body: plan.Body{Bound: true, Final: true, Grace: podGrace, VanishedAt: in(-time.Second), Node: well},
			want: plan.Death{Why: "it vanished; its grace is not over", After: in(podGrace + fenceGrace - time.Second)},
		},
		"(c) it is dead after that, its node having been ready throughout": {
			body: plan.Body{Bound: true, Final: true, Grace: podGrace, VanishedAt: in(-podGrace - fenceGrace), Node: well},
			want: plan.Death{Confirmed: true, Why: "it vanished and its grace is over"},
		},
		"(c) it is not dead as long as its kubelet has not been heard of since": {
			body: plan.Body{Bound: true, Grace: podGrace, VanishedAt: in(-time.Hour), Node: plan.Node{Ready: true, HeardFirst: in(-time.Hour), HeardAt: in(-time.Hour)}},
			want: plan.Death{Why: "it vanished, and its kubelet has not been heard of since its grace is over", After: in(time.Second)},
		},
		"(c) its grace counts from the first heartbeat after it vanished: a node that was cut off learns of it only then": {
			body: plan.Body{Bound: true, Grace: podGrace, VanishedAt: in(-time.Hour), Node: plan.Node{Ready: true, ReadySince: in(-2 * time.Hour), HeardFirst: now, HeardAt: now}},
			want: plan.Death{Why: "it vanished; its grace is not over", After: in(podGrace + fenceGrace)},
		},
		"(c) it is not dead while its node is not ready": {
			body: plan.Body{Bound: true, Final: true, Grace: podGrace, VanishedAt: in(-time.Hour)},
			want: plan.Death{Why: "it vanished and its node is not ready"},
		},
		"(c) a node that was away in between starts the count over": {
			body: plan.Body{Bound: true, Grace: podGrace, VanishedAt: in(-time.Hour), Node: plan.Node{Ready: true, ReadySince: in(-time.Second), HeardFirst: in(-time.Hour), HeardAt: now}},
			want: plan.Death{Why: "it vanished; its grace is not over", After: in(podGrace + fenceGrace - time.Second)},
		},
		"(c) a pod of which nobody knows when it vanished is not dead": {
			body: plan.Body{Bound: true, Grace: podGrace, Node: well},
			want: plan.Death{Why: "it vanished and its node is not ready"},
		},
		"(d) a deleted pod of a node that is gone is dead": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Node: plan.Node{Gone: true}},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node is gone"},
		},
		"(d) a vanished pod of a node that is gone is dead": {
			body: plan.Body{Bound: true, VanishedAt: now, Node: plan.Node{Gone: true}},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node is gone"},
		},
		"(d) a pod that nobody deleted comes back with its node": {
			body: plan.Body{Exists: true, Bound: true, Node: plan.Node{Gone: true}},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(d) a deleted pod of a node that is out of service is dead": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Node: plan.Node{OutOfService: true}},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node is out of service"},
		},
		"(d) a pod that was due to be killed before its node rebooted is dead": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Deadline: in(-time.Minute), Node: back},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node has rebooted"},
		},
		"(d) a pod deleted after its node came back may have been started again": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Deadline: in(time.Second), Node: back},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(d) a pod that nobody deleted is started again after a reboot": {
			body: plan.Body{Exists: true, Bound: true, Node: back},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(d) a pod that had vanished before its node rebooted is dead": {
			body: plan.Body{Bound: true, Grace: podGrace, VanishedAt: in(-time.Minute), Node: back},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node has rebooted"},
		},
		"(d) a pod that vanished after the reboot is given its grace": {
			body: plan.Body{Bound: true, Grace: podGrace, VanishedAt: in(-time.Second), Node: back},
			want: plan.Death{Why: "it vanished; its grace is not over", After: in(podGrace + fenceGrace - time.Second)},
		},
		"(d) a pod that had ended before the reboot stays so": {
			body: plan.Body{Exists: true, Bound: true, Terminal: true, Node: back},
			want: plan.Death{Confirmed: true, Presumed: true, Why: "its node has rebooted"},
		},
		"(d) a node that is not up yet has not shown that it rebooted in time": {
			body: plan.Body{Exists: true, Bound: true, Deleting: true, Deadline: in(-time.Minute), Node: plan.Node{Rebooted: true}},
			want: plan.Death{Why: "it has not stopped"},
		},
		"(e) an operator's word counts": {
			body: plan.Body{Exists: true, Bound: true}, confirmed: true,
			want: plan.Death{Confirmed: true, Presumed: true, Why: "an operator confirmed it"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plan.Dead(now, tc.body, fenceGrace, tc.confirmed)); diff != "" {
				t.Errorf("death (-want +got):\n%s", diff)
			}
		})
	}
}
