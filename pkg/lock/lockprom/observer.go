package lockprom

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/conch-dev/conch/pkg/lock"
)

// Observer counts what it is told. Make it with New.
type Observer struct {
	durations *prometheus.HistogramVec
	requests  *prometheus.CounterVec
	lateness  prometheus.Histogram
	panics    prometheus.Counter
	lost      *prometheus.CounterVec
	held      prometheus.Gauge
}

var _ lock.Observer = (*Observer)(nil)

// New registers the metrics. A process with several keepers gives each an Observer of its own, over
// a registerer of prometheus.WrapRegistererWith and a label such as backend.
func New(r prometheus.Registerer) (*Observer, error) {
	o := &Observer{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "conch_store_request_duration_seconds",
			Help: "How long calls to the store took, by call and outcome. A renew is one batch.",
			// From a store on the same host to the longest time a call may take.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .2, .35, .6, 1, 2, 5},
		}, []string{"op", "outcome"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "conch_store_requests_total",
			Help: "Calls to the store, by call, outcome, and the reason of those that it did not answer.",
		}, []string{"op", "outcome", "reason"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "conch_renewal_lateness_seconds",
			Help: "How long after its due time a renewal was sent. Anything near a renewal interval means that the keeper is starved.",
			// From one tick of the keeper to what costs locks of the usual ttl.
			Buckets: []float64{.001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "conch_keeper_panics_total",
			Help: "Panics in the keeping of a lock. Each was isolated, and is a fault of conch that should be reported.",
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "conch_locks_lost_total",
			Help: "Grants that ended against their holder's will, by what stood in their place.",
		}, []string{"cause"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "conch_locks_held",
			Help: "Grants that are kept now. Every replica keeps those of its cluster.",
		}),
	}
	if err := o.register(r); err != nil {
		return nil, err
	}
	return o, nil
}

// register registers all or nothing.
func (o *Observer) register(r prometheus.Registerer) error {
	all := []prometheus.Collector{o.durations, o.requests, o.lateness, o.panics, o.lost, o.held}
	for i, c := range all {
		if err := r.Register(c); err != nil {
			for _, done := range all[:i] {
				r.Unregister(done)
			}
			return fmt.Errorf("register lock metrics: %w", err)
		}
	}
	return nil
}

// Requested implements lock.Observer.
func (o *Observer) Requested(op string, took time.Duration, err error) {
	op, outcome, reason := boundedOp(op), outcomeOf(err), ""
	if outcome == outcomeUnknown {
		reason = boundedReason(lock.ReasonOf(err))
	}
	o.durations.WithLabelValues(op, outcome).Observe(took.Seconds())
	o.requests.WithLabelValues(op, outcome, reason).Inc()
}

// RenewedLate implements lock.Observer.
func (o *Observer) RenewedLate(late time.Duration) { o.lateness.Observe(late.Seconds()) }

// Panicked implements lock.Observer. The key is for logs: as a label it would have no bound.
func (o *Observer) Panicked(lock.Key) { o.panics.Inc() }

// Lost implements lock.Observer.
func (o *Observer) Lost(_ lock.Key, err error) { o.lost.WithLabelValues(causeOf(err)).Inc() }

// Holding implements lock.Observer.
func (o *Observer) Holding(n int) { o.held.Set(float64(n)) }

func causeOf(err error) string {
	var l *lock.LostError
	if !errors.As(err, &l) {
		return "other"
	}
	switch l.Seen.State {
	case lock.ViewFree, lock.ViewReleased:
		return "gone"
	case lock.ViewHeld:
		return "taken"
	case lock.ViewForeign:
		return "foreign"
	}
	return "other"
}
