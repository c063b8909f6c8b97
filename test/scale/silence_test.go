package scale

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/redis/go-redis/v9"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/rig"
)

const (
	ttl           = 15 * time.Second
	renewInterval = ttl / 6
	intervals     = 5
	// sampleEvery is short against the time in which a key that nobody renews would fall below the limit.
	sampleEvery = 250 * time.Millisecond
	// startWithin is what all locks together may take, on two cores that others use too.
	startWithin = 5 * time.Minute
)

// Renewals are between conch and Redis: held locks cost the API server nothing, however many they are.
func TestHeldLocksCauseNoWriteAndNoLogLine(t *testing.T) {
	n := 200
	if soaking() {
		n = 1000
	}
	w := newWorld(t)
	mark, err := w.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	begin := time.Now()
	w.create(n, ttl)
	created := time.Since(begin)
	w.Eventually(w.started, startWithin, 250*time.Millisecond).Should(Equal(n))
	t.Logf("%d locks: created in %s, all held and started after %s", n, created.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	t.Logf("conch's writes until then: %v", count(w.writesSince(mark)))
	w.Eventually(func() []string { return w.writesDuring(2 * time.Second) }, time.Minute, time.Millisecond).Should(BeEmpty())
	said := w.said()
	w.Expect(said).To(ContainElement(ContainSubstring("Lock changed")), "a log without transitions is not to be trusted")

	mark, err = w.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	lowest := w.sample(n, intervals*renewInterval)

	w.Expect(w.writesSince(mark)).To(BeEmpty(), "writes besides the Lease")
	leases, err := w.cluster.AuditSince(mark, lease)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(leases).NotTo(BeEmpty(), "a log without the Lease's renewals is not to be trusted")
	for i, log := range w.said() {
		w.Expect(strings.TrimPrefix(log, said[i])).To(BeEmpty(), "what "+w.conchs[i].Name+" said meanwhile")
	}
	w.Expect(lowest).To(BeNumerically(">", ttl/3), "the lowest time to live that any key had")
	w.Expect(w.started()).To(Equal(n))
	t.Logf("%d locks over %d renewal intervals: lowest time to live %s of %s", n, intervals, lowest, ttl)
}

// started counts the locks whose holder was seen running.
func (w *world) started() int {
	var list lockv1alpha1.DistributedLockList
	w.Expect(w.client.List(w.t.Context(), &list, client.InNamespace(namespace))).To(Succeed())
	n := 0
	for i := range list.Items {
		if s := &list.Items[i].Status; s.State == lockv1alpha1.StateHeld && s.StartedAt != nil {
			n++
		}
	}
	return n
}

// sample watches the time to live of every key for a while and returns the lowest; a missing key has none.
func (w *world) sample(n int, during time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(w.t.Context(), during)
	defer cancel()
	store := w.redis.Client(w.t)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	lowest := ttl
	for {
		select {
		case <-ctx.Done():
			return lowest
		case <-tick.C:
		}
		var replies []*redis.DurationCmd
		_, err := store.Pipelined(w.t.Context(), func(p redis.Pipeliner) error {
			for i := range n {
				replies = append(replies, p.PTTL(w.t.Context(), "conch:{"+clusterID+"/"+namespace+"/"+name(i)+"}"))
			}
			return nil
		})
		w.Expect(err).NotTo(HaveOccurred())
		for _, r := range replies {
			lowest = min(lowest, r.Val())
		}
	}
}

func lease(e cluster.AuditEvent) bool {
	return cluster.Writes(rig.User)(e) && e.Resource == "leases" && e.Namespace == rig.Namespace
}

// writesSince names what conch wrote besides its Lease, in any namespace.
func (w *world) writesSince(mark int64) []string {
	events, err := w.cluster.AuditSince(mark, func(e cluster.AuditEvent) bool { return cluster.Writes(rig.User)(e) && !lease(e) })
	w.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s %d %s/%s", e.Verb, e.Resource, e.Code, e.Namespace, e.Name))
	}
	return out
}

// count sums writes up by verb, resource and answer.
func count(writes []string) map[string]int {
	sums := map[string]int{}
	for _, write := range writes {
		sums[write[:strings.LastIndex(write, " ")]]++
	}
	return sums
}

func (w *world) writesDuring(d time.Duration) []string {
	mark, err := w.cluster.AuditMark()
	w.Expect(err).NotTo(HaveOccurred())
	<-time.After(d)
	return w.writesSince(mark)
}

// said is what each replica logged at Info and above.
func (w *world) said() []string {
	var logs []string
	for _, c := range w.conchs {
		var log strings.Builder
		for line := range strings.Lines(c.Log()) {
			if !strings.Contains(line, "DEBUG") && !strings.Contains(line, `"level":"debug"`) {
				log.WriteString(line)
			}
		}
		logs = append(logs, log.String())
	}
	return logs
}
