package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conch-dev/conch/controllers/naming"
)

func TestLock(t *testing.T) {
	for name, tc := range map[string]struct{ kind, name, want string }{
		"a Job's":          {"Job", "nightly", "job-nightly"},
		"a Deployment's":   {"Deployment", "web.v2", "deployment-web.v2"},
		"the longest name": {"Job", strings.Repeat("a", 249), "job-" + strings.Repeat("a", 249)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := naming.Lock(tc.kind, tc.name); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLongNamesAreCutAndStayApart(t *testing.T) {
	common := strings.Repeat("a", 229)
	a, b := naming.Lock("StatefulSet", common+strings.Repeat(".x", 12)), naming.Lock("StatefulSet", common+strings.Repeat(".y", 12))
	if a == b {
		t.Errorf("two workloads share the lock %s", a)
	}
	for _, name := range []string{a, b} {
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
