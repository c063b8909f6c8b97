package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/controllers"
	"github.com/conch-dev/conch/controllers/election"
	"github.com/conch-dev/conch/controllers/workloads"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// buildManager makes a manager that elects nobody: every replica runs everything, and the controllers
// ask for the right to decide before each write.
func buildManager(cfg *rest.Config, s settings.Settings) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, lockv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	caches, err := cacheOptions(s)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   caches,
		HealthProbeBindAddress:  s.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: s.MetricsAddress},
		GracefulShutdownTimeout: ptr.To(controllersWithin),
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// cacheOptions keep what conch looks at, and no more: what is marked, in the namespaces that it is
// limited to. ReplicaSets and ControllerRevisions inherit the label from the template they stand for.
func cacheOptions(s settings.Settings) (cache.Options, error) {
	marked, err := labels.NewRequirement(lockv1alpha1.LabelSingleton, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select marked pods: %w", err)
	}
	selected := cache.ByObject{Label: labels.NewSelector().Add(*marked)}
	replicaSets := &metav1.PartialObjectMetadata{}
	replicaSets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	o := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:      selected,
			&batchv1.Job{}:     selected,
			replicaSets:        selected,
			&batchv1.CronJob{}: {Transform: withoutTemplate},
			&appsv1.ControllerRevision{}: {
				Label: selected.Label, Transform: withoutData,
			},
		},
	}
	for _, m := range workloads.Metadata() {
		o.ByObject[m] = cache.ByObject{Transform: workloads.StripMetadata}
	}
	if len(s.Namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range s.Namespaces {
			o.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return o, nil
}

// withoutData keeps the number of a version of a StatefulSet and drops the version itself.
func withoutData(o any) (any, error) {
	if rev, ok := o.(*appsv1.ControllerRevision); ok {
		rev.Data, rev.ManagedFields = runtime.RawExtension{}, nil
	}
	return o, nil
}

// withoutTemplate keeps the rules of a schedule and drops what it makes Jobs of.
func withoutTemplate(o any) (any, error) {
	if cron, ok := o.(*batchv1.CronJob); ok {
		cron.Spec.JobTemplate, cron.ManagedFields = batchv1.JobTemplateSpec{}, nil
	}
	return o, nil
}

// addControllers registers the controllers and what wakes them.
func (p *process) addControllers(ctx context.Context) error {
	counted, err := controllers.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	p.decisions = func(ctx context.Context) error { return follow(ctx, p.election, counted.SetDeciding) }
	keepers := map[string]controllers.Keeper{}
	var news []<-chan keeper.Event
	for _, name := range slices.Sorted(maps.Keys(p.stores.keepers)) {
		keepers[name] = p.stores.keepers[name]
		news = append(news, p.stores.keepers[name].Events())
	}
	r, err := controllers.New(controllers.Options{
		Client:          p.manager.GetClient(),
		APIReader:       p.manager.GetAPIReader(),
		Recorder:        p.manager.GetEventRecorder("conch"),
		Keepers:         keepers,
		Election:        p.election,
		Identity:        p.guard,
		Cluster:         p.cluster,
		ClusterSet:      p.settings.ClusterSet,
		Contending:      p.watcher.Contending,
		AllowsNamespace: p.settings.AllowsNamespace,
		AllowsRawKey:    p.settings.AllowsRawKey,
		APISeen:         p.seen.Time,
		MaxBlindRenew:   p.settings.Timings.MaxBlindRenew,
		Metrics:         counted,
	})
	if err != nil {
		return err
	}
	if err := workloads.SetupWithManager(p.manager, workloads.Options{
		Client: p.manager.GetClient(), APIReader: p.manager.GetAPIReader(), Recorder: p.manager.GetEventRecorder("conch"),
		Election: p.election, ClusterSet: p.settings.ClusterSet,
	}, p.election.Changed); err != nil {
		return err
	}
	blind := make(chan struct{}, 1)
	if err := p.manager.Add(manager.RunnableFunc(r.Blindness(blind))); err != nil {
		return fmt.Errorf("watch for an API server that stays away: %w", err)
	}
	return r.SetupWithManager(ctx, p.manager, controllers.News{
		Keepers:    news,
		Everything: []<-chan struct{}{p.election.Changed(), p.guard.Changed(), p.watcher.Changed(), blind},
	})
}

// follow tells set whether this replica decides, whenever that changes.
func follow(ctx context.Context, e *election.Election, set func(bool)) error {
	changed := e.Changed()
	for {
		set(e.Deciding())
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
