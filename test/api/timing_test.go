package api

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/pkg/lock"
)

// The rule in the CRD and the one in pkg/lock are two texts of one rule.
func TestServerJudgesTimingsAsTheLibraryDoes(t *testing.T) {
	for _, ttl := range []string{"5s", "6500ms", "11s", "12s", "17s", "18s", "30s", "59s", "60s", "61s", "5m", "24h"} {
		t.Run(ttl, func(t *testing.T) {
			full := parse(t, ttl)
			for _, renew := range []time.Duration{0, full / 6, full / 4, full * 3 / 8, full*3/8 + 100*time.Millisecond, full / 2} {
				for _, grace := range []time.Duration{0, time.Second, full / 3, full / 2, full * 7 / 12, full * 2 / 3} {
					judge(t, full, renew.Truncate(time.Millisecond), grace.Truncate(time.Second))
				}
			}
		})
	}
}

func judge(t *testing.T, ttl, renew, grace time.Duration) {
	t.Helper()
	spec := fmt.Sprintf(`{ttl: %s`, ttl)
	if renew > 0 {
		spec += fmt.Sprintf(`, renewInterval: %s`, renew)
	}
	if grace > 0 {
		spec += fmt.Sprintf(`, fenceGrace: %s`, grace)
	}
	if renew > 12*time.Hour || grace > 12*time.Hour {
		return // bounded on their own
	}
	_, err := locks(t, "default").Create(t.Context(), object(t, spec+`}`), metav1.CreateOptions{DryRun: dry})
	if err != nil && !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	want := lock.Timing{TTL: ttl, RenewInterval: renew, FenceGrace: grace}.WithDefaults().Validate()
	if (want == nil) != (err == nil) {
		t.Errorf("%s}: the server says %v, the library %v", spec, err, want)
	}
}

func parse(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A Go client writes durations its own way (1m0s); what it reads it must be able to write.
func TestServerAcceptsFromAGoClientWhatItGave(t *testing.T) {
	client := locks(t, namespace(t))
	for _, ttl := range []string{"60s", "5m", "1h", "24h", "90500ms", "1m0.5s", "7s1ms", "1h0m0.001s"} {
		created, err := client.Create(t.Context(), object(t, `{startDeadline: `+ttl+`}`), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("create with %s: %v", ttl, err)
			continue
		}
		var typed lockv1alpha1.DistributedLock
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, &typed); err != nil {
			t.Errorf("read %s: %v", ttl, err)
			continue
		}
		back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		if err != nil {
			t.Fatal(err)
		}
		created.Object = back
		if _, err := client.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Errorf("write %s back as %s: %v", ttl, typed.Spec.StartDeadline.Duration, err)
		}
	}
}
