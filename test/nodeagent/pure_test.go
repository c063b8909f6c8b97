package nodeagent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	vars := variables{{"A", "1"}, {"B", "two"}, {"A", "3"}}
	tests := map[string]struct{ in, want string }{
		"the last value counts":             {"$(A)", "3"},
		"several in one word":               {"x$(B)$(A)y", "xtwo3y"},
		"an unknown one stands":             {"$(C)", "$(C)"},
		"two dollars escape":                {"$$(A)", "$(A)"},
		"a dollar without brackets is none": {"$A $", "$A $"},
		"an open bracket is none":           {"$(A", "$(A"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, expand(tc.in, vars)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergedKeepsWhatIsNotTheKubelets(t *testing.T) {
	t.Parallel()
	early, late := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at}
	}
	seen := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", QOSClass: corev1.PodQOSBurstable, PodIP: "10.1.1.1", Conditions: []corev1.PodCondition{
		condition(corev1.DisruptionTarget, corev1.ConditionTrue, early),
		condition(corev1.PodReady, corev1.ConditionTrue, early),
		condition(corev1.PodScheduled, corev1.ConditionTrue, early),
	}}
	own := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", Conditions: []corev1.PodCondition{
		condition(corev1.PodReady, corev1.ConditionFalse, late),
		condition(corev1.PodScheduled, corev1.ConditionTrue, late),
		condition(corev1.ContainersReady, corev1.ConditionFalse, late),
	}}

	want := seen
	want.HostIP = "10.0.0.1"
	want.Conditions = []corev1.PodCondition{
		condition(corev1.DisruptionTarget, corev1.ConditionTrue, early),
		condition(corev1.PodReady, corev1.ConditionFalse, late),
		condition(corev1.PodScheduled, corev1.ConditionTrue, early),
		condition(corev1.ContainersReady, corev1.ConditionFalse, late),
	}
	if diff := cmp.Diff(want, merged(seen, own)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALaterStopOrderOnlyShortens(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		give func(*worker)
		want stopOrder
	}{
		"the kubelet's least grace": {
			give: func(w *worker) { w.orderStop(start, 0, 0) },
			want: stopOrder{begin: start, deadline: start.Add(minGrace)},
		},
		"a longer one changes nothing": {
			give: func(w *worker) {
				w.orderStop(start, 10*time.Second, 0)
				w.orderStop(start.Add(time.Second), time.Minute, 0)
			},
			want: stopOrder{begin: start, deadline: start.Add(10 * time.Second)},
		},
		"a shorter one counts from its arrival": {
			give: func(w *worker) {
				w.orderStop(start, time.Minute, 0)
				w.orderStop(start.Add(time.Second), 5*time.Second, 0)
			},
			want: stopOrder{begin: start, deadline: start.Add(6 * time.Second)},
		},
		"a slow node begins late and gives as much": {
			give: func(w *worker) { w.orderStop(start, 10*time.Second, time.Minute) },
			want: stopOrder{begin: start.Add(time.Minute), deadline: start.Add(70 * time.Second)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}

			tc.give(w)

			if diff := cmp.Diff(tc.want, *w.stop, cmp.AllowUnexported(stopOrder{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVolumeHoldsExactlyItsFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "volume")
	content := func(words ...string) map[string][]byte {
		files := map[string][]byte{}
		for i := 0; i < len(words); i += 2 {
			files[words[i]] = []byte(words[i+1])
		}
		return files
	}
	for _, files := range []map[string][]byte{
		content("token", "1", "old", "x"), content("token", "2", "deep/er", "y"), content("token", "3", "deep/er", "y"),
	} {
		if err := writeVolume(dir, files); err != nil {
			t.Fatal(err)
		}
	}

	got := map[string][]byte{}
	for _, name := range []string{"token", "old", "deep/er"} {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			got[name] = raw
		}
	}
	if diff := cmp.Diff(content("token", "3", "deep/er", "y"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := writeVolume(dir, content("../outside", "z")); err == nil {
		t.Error("a file outside the volume was written")
	}
}
