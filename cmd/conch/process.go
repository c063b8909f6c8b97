package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/conch-dev/conch/cmd/internal/backends"
	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/controllers/election"
	"github.com/conch-dev/conch/controllers/identity"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/lockprom"
)

// process is everything that run starts and ends.
type process struct {
	settings settings.Settings
	cluster  string
	seen     *lastSeen
	stores   *stores
	election *election.Election
	guard    *identity.Guard
	watcher  *settings.Watcher
	manager  manager.Manager
	// decisions shows in the metrics who decides.
	decisions func(context.Context) error
}

// buildProcess makes all parts. It connects to the API server only to learn the cluster's identity.
func buildProcess(ctx context.Context, o options, s settings.Settings) (*process, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	p := &process{settings: s, seen: &lastSeen{}, watcher: buildWatcher(ctx, o.config, s)}
	cfg, err := restConfig(o.kubeconfig, p.seen)
	if err != nil {
		return nil, err
	}
	if p.cluster, err = clusterIdentity(ctx, cfg, firstOf(o.clusterID, s.ClusterID)); err != nil {
		return nil, err
	}
	if p.stores, err = buildStores(s, nonce, counted); err != nil {
		return nil, err
	}
	if err := p.buildDeciders(cfg, o.identity+"_"+nonce); err != nil {
		return nil, err
	}
	if p.manager, err = buildManager(cfg, s); err != nil {
		return nil, err
	}
	if err := p.addControllers(ctx); err != nil {
		return nil, err
	}
	return p, p.addProbes()
}

// counted is an observer that counts the requests to one backend.
func counted(backend string) (lock.Observer, error) {
	return lockprom.New(prometheus.WrapRegistererWith(prometheus.Labels{"backend": backend}, metrics.Registry))
}

// buildDeciders makes the election and the guard of the cluster's identity. Both know this process
// by one name.
func (p *process) buildDeciders(cfg *rest.Config, name string) error {
	var err error
	if p.election, err = buildElection(cfg, p.settings, name); err != nil {
		return err
	}
	p.guard, err = identity.New(identity.Options{
		Stores: backends.Announcers(p.stores.backends), Election: p.election, Cluster: p.cluster, Name: name,
	})
	return err
}

func buildElection(cfg *rest.Config, s settings.Settings, name string) (*election.Election, error) {
	client, err := kubernetes.NewForConfig(withoutLimits(cfg))
	if err != nil {
		return nil, fmt.Errorf("make a client for the Lease: %w", err)
	}
	t := s.Timings
	return election.New(election.Options{
		Leases: client.CoordinationV1().Leases(firstOf(s.LeaseNamespace, ownNamespace())), Name: s.LeaseName, Identity: name,
		LeaseDuration: t.LeaseDuration, RenewDeadline: t.RenewDeadline, RetryPeriod: t.RetryPeriod,
	})
}

// buildWatcher follows the configuration file and logs what it finds.
func buildWatcher(ctx context.Context, file string, s settings.Settings) *settings.Watcher {
	log := ctrl.LoggerFrom(ctx).WithName("config")
	w := settings.NewWatcher(file, s)
	w.Report = func(err error, restart bool) {
		switch {
		case err != nil:
			log.Error(err, "The changed configuration has problems, the one before stays in force")
		case restart:
			log.Info("The configuration has changed in more than contend: the rest counts from the next start on", "contend", w.Contending())
		default:
			log.Info("The configuration has changed", "contend", w.Contending())
		}
	}
	return w
}

// tasks are those that may end only once the controllers have.
func (p *process) tasks() []task {
	watched := map[string]election.Store{}
	for name, k := range p.stores.keepers {
		watched[name] = k
	}
	return []task{
		{"elect a decider", p.election.Run},
		{"watch the backends' answers", func(ctx context.Context) error { return p.election.Watch(ctx, watched) }},
		{"guard the cluster's identity", p.guard.Run},
		{"follow the configuration", p.watcher.Run},
		{"count decisions", p.decisions},
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
