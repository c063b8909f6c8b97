package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conch-dev/conch/controllers/plan"
)

// Metrics are what the controllers count. A nil Metrics counts nothing.
type Metrics struct {
	held        *prometheus.GaugeVec
	token       *prometheus.GaugeVec
	transitions *prometheus.CounterVec
	deciding    prometheus.Gauge
}

// NewMetrics makes the controllers' metrics and registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "conch_lock_held", Help: "1 while this cluster holds the lock.",
		}, []string{"namespace", "name"}),
		token: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "conch_lock_fencing_token", Help: "Fencing token of the present tenure, 0 without one.",
		}, []string{"namespace", "name"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "conch_lock_transitions_total", Help: "Changes of a lock's state, by the new state and the reason.",
		}, []string{"state", "reason"}),
		deciding: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "conch_deciding", Help: "1 while this replica decides.",
		}),
	}
	for _, c := range []prometheus.Collector{m.held, m.token, m.transitions, m.deciding} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) record(name types.NamespacedName, before, after plan.Status, cluster string) {
	if m == nil {
		return
	}
	held, token := 0.0, 0.0
	if after.Ours(cluster) {
		held, token = 1, float64(after.FencingToken)
	}
	m.held.WithLabelValues(name.Namespace, name.Name).Set(held)
	m.token.WithLabelValues(name.Namespace, name.Name).Set(token)
	if before.State != after.State {
		m.transitions.WithLabelValues(string(after.State), string(after.Ending)).Inc()
	}
}

// forget removes the series of a lock that is gone.
func (m *Metrics) forget(name types.NamespacedName) {
	if m == nil {
		return
	}
	m.held.DeleteLabelValues(name.Namespace, name.Name)
	m.token.DeleteLabelValues(name.Namespace, name.Name)
}

// SetDeciding reports whether this replica decides.
func (m *Metrics) SetDeciding(yes bool) {
	if m == nil {
		return
	}
	m.deciding.Set(map[bool]float64{true: 1}[yes])
}
