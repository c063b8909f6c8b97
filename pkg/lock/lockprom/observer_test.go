package lockprom_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/lockprom"
)

func unknown(r lock.Reason) error {
	return &lock.UnknownError{Op: "test", Reason: r, Err: errors.New("cause")}
}

func lost(s lock.ViewState) error { return &lock.LostError{Seen: lock.View{State: s}} }

func newObserver(t *testing.T) (*lockprom.Observer, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	o, err := lockprom.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	return o, reg
}

// gather lists the series as name{labels} value, histograms by how much they counted.
func gather(t *testing.T, reg prometheus.Gatherer) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), value(m)))
		}
	}
	slices.Sort(all)
	return all
}

func value(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func TestEveryCallIsCountedByOutcomeAndReason(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		op   string
		err  error
		want string
	}{
		"an answer":              {"renew", nil, "op=renew,outcome=ok,reason="},
		"held by another":        {"acquire", &lock.HeldError{}, "op=acquire,outcome=held,reason="},
		"a loss":                 {"release", lost(lock.ViewFree), "op=release,outcome=lost,reason="},
		"a wrapped loss":         {"release", fmt.Errorf("x: %w", lock.ErrLost), "op=release,outcome=lost,reason="},
		"no answer":              {"abandon", unknown(lock.ReasonTimeout), "op=abandon,outcome=unknown,reason=Timeout"},
		"a reason made up":       {"inspect", unknown("key-4711"), "op=inspect,outcome=unknown,reason=BackendError"},
		"an error made up":       {"acquire", errors.New("key-4711"), "op=acquire,outcome=unknown,reason=BackendError"},
		"not supported":          {"acquire", lock.ErrUnsupported, "op=acquire,outcome=refused,reason="},
		"malformed":              {"acquire", lock.ErrInvalid, "op=acquire,outcome=refused,reason="},
		"a call of another name": {"key-4711", nil, "op=other,outcome=ok,reason="},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, reg := newObserver(t)
			o.Requested(c.op, time.Millisecond, c.err)
			short, _, _ := strings.Cut(c.want, ",reason")
			want := []string{
				"conch_keeper_panics_total{} 0",
				"conch_locks_held{} 0",
				"conch_renewal_lateness_seconds{} 0",
				"conch_store_request_duration_seconds{" + short + "} 1",
				"conch_store_requests_total{" + c.want + "} 1",
			}
			if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestLossesPanicsLatenessAndHoldingsAreCounted(t *testing.T) {
	t.Parallel()
	o, reg := newObserver(t)
	for _, err := range []error{lost(lock.ViewFree), lost(lock.ViewReleased), lost(lock.ViewHeld), lost(lock.ViewForeign), lost("new"), lock.ErrLost} {
		o.Lost(lock.Key{Name: "key-4711"}, err)
	}
	o.Panicked(lock.Key{Name: "key-4711"})
	o.RenewedLate(time.Second)
	o.RenewedLate(0)
	o.Holding(3)
	o.Holding(2)
	want := []string{
		"conch_keeper_panics_total{} 1",
		"conch_locks_held{} 2",
		"conch_locks_lost_total{cause=foreign} 1",
		"conch_locks_lost_total{cause=gone} 2",
		"conch_locks_lost_total{cause=other} 2",
		"conch_locks_lost_total{cause=taken} 1",
		"conch_renewal_lateness_seconds{} 2",
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Fatal(diff)
	}
}

func TestSeveralKeepersShareARegistryUnderALabel(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		o, err := lockprom.New(prometheus.WrapRegistererWith(prometheus.Labels{"backend": name}, reg))
		if err != nil {
			t.Fatal(err)
		}
		o.Holding(len(name))
	}
	if n := len(gather(t, reg)); n != 6 {
		t.Fatalf("%d series", n)
	}
}

func TestARegistryThatRefusesIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "conch_locks_held", Help: "another"}))
	if _, err := lockprom.New(reg); err == nil {
		t.Fatal("no error for a name that is taken")
	}
	if got := gather(t, reg); len(got) != 1 {
		t.Fatalf("left behind: %v", got)
	}
}
