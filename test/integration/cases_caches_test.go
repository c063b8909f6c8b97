package integration

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/rig"
)

// C85: every watch is three seconds late, so that conch never sees what it has just written. It takes no lock twice, and
// goes back to no older token.
func TestWithCachesThatLagALockIsTakenOnceAndNeverGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api, via := w.east.through()
	api.Lag(3 * time.Second)
	writes := make(chan string, 10000)
	api.Before(func(wr rig.Write) { writes <- wr.Method + " " + wr.Resource })
	w.east.conch(1, via)
	w.east.newLock("web", ttl(longTTL))
	w.east.exclusive("web", 2)
	w.east.runs("web", 1)
	held := w.east.holds("web")
	for i := range 5 {
		body := fmt.Sprintf(`{"metadata":{"labels":{"poke":"%d"}}}`, i)
		w.Expect(w.east.client.Patch(t.Context(), w.east.lock("web"), client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
	}
	w.Consistently(func() lockv1alpha1.DistributedLockStatus { return w.east.lock("web").Status }, 4*time.Second, look).Should(And(
		HaveField("Token", held.Status.Token), HaveField("Tenures", held.Status.Tenures), HaveField("State", lockv1alpha1.StateHeld)))
	w.Expect(held.Status.Tenures).To(BeEquivalentTo(1))
	w.Expect(len(writes)).To(BeNumerically("<", 150), "a write that is refused is not repeated all the time")
	t.Logf("%d writes", len(writes))

	w.east.remove(held.Status.Holder.Name)
	after := w.east.passesOn("web", held.Status.FencingToken)
	w.Expect(after.Status.Tenures).To(BeEquivalentTo(2))
	ledger.Verdict(t, w.ledger)
}
