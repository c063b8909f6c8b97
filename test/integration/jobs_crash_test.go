package integration

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// jobCrashPoints is how many writes of a Job's tenures a crash is tried at: one that is ended by an
// operator, with all its steps, and the start of the next.
const jobCrashPoints = 13

func TestConchKilledAtAnyStepOfAJobLosesNothing(t *testing.T) {
	t.Parallel()
	for n := 1; n <= jobCrashPoints; n++ {
		for _, when := range []string{"before", "after"} {
			if !soaking() && (n%2 == 0) != (when == "before") {
				continue // the other half runs in a soak
			}
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				t.Parallel()
				crashJobAt(t, when, n)
			})
		}
	}
}

func crashJobAt(t *testing.T, when string, n int) {
	w := newWorld(t)
	api, via := w.east.through()
	victim := w.east.conch(1, via)[0]
	var once sync.Once
	kill := func(wr rig.Write) {
		if wr.N == n {
			once.Do(victim.Kill)
		}
	}
	if when == "before" {
		api.Before(kill)
	} else {
		api.After(kill)
	}
	w.east.newLock("work")
	w.east.job("work", "first", parallel(2))
	revived := func(f func() string) func() string {
		return func() string {
			if !victim.Alive() && len(w.east.conchs) == 1 {
				w.east.conch(1, func(o *rig.Options) { o.Extra += quickLease })
			}
			return f()
		}
	}
	started := revived(func() string {
		l := w.east.lock("work")
		if l.Status.State == lockv1alpha1.StateHeld && l.Status.StartedAt != nil && len(w.east.jobPods(l.Status.Holder.Name)) > 0 {
			return l.Status.Holder.Name
		}
		return describe(l)
	})
	w.Eventually(started, within, look).Should(Equal("first"))
	before := w.east.lock("work").Status.FencingToken
	w.east.annotate("work", lockv1alpha1.AnnotationRelease, fmt.Sprint(before))
	w.Eventually(revived(func() string { return fmt.Sprint(w.east.lock("work").Status.FencingToken > before) }), within, look).Should(Equal("true"))
	w.Eventually(started, within, look).Should(Equal("first"))
	w.east.job("work", "second", runFor("0.5", 0))
	w.east.deleteJob("first", metav1.DeletePropagationOrphan)
	w.Eventually(revived(func() string { return w.east.jobReads("second") }), within, look).Should(Equal("resumed Complete"))
	once.Do(func() {}) // from here on nobody is killed
	w.east.free("work")
	ledger.Verdict(t, w.ledger)
}
