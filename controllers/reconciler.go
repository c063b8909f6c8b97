package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conch-dev/conch/controllers/plan"
)

// +kubebuilder:rbac:groups=conch.dev,resources=distributedlocks,verbs=get;list;watch
// +kubebuilder:rbac:groups=conch.dev,resources=distributedlocks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets/scale,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=about.k8s.io,resources=clusterproperties,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update;patch,namespace=conch-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get,namespace=kube-node-lease

// cacheLag is how long a cache usually needs to see a write. It doubles up to 32 times where it needs longer, so
// that a slow watch is not answered by a write that is refused fifty times a second.
const cacheLag = 20 * time.Millisecond

// atOnce is for a next step that waits for nothing.
const atOnce = time.Millisecond

// Options are everything that a Reconciler needs. All fields are required unless they say so.
type Options struct {
	Client    client.Client
	APIReader client.Reader
	Recorder  events.EventRecorder
	// Keepers are the keepers by the name of their backend.
	Keepers  map[string]Keeper
	Election Election
	Identity Identity
	// Cluster and ClusterSet are this cluster's identity and the set that it shares locks with.
	Cluster    string
	ClusterSet string
	// Contending is false while the operator drains this cluster.
	Contending func() bool
	// AllowsNamespace and AllowsRawKey are the operator's rules.
	AllowsNamespace func(namespace string) bool
	AllowsRawKey    func(namespace, key string) bool
	// APISeen is when this process last heard from the API server.
	APISeen func() time.Time
	// MaxBlindRenew bounds how long the grants of started holders are renewed without the API server.
	MaxBlindRenew time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Validate reports everything that is missing.
func (o Options) Validate() error {
	var problems []error
	need := func(ok bool, what string) {
		if !ok {
			problems = append(problems, errors.New("controllers: "+what+" is missing"))
		}
	}
	need(o.Client != nil && o.APIReader != nil, "a client or an API reader")
	need(o.Recorder != nil, "an event recorder")
	need(len(o.Keepers) > 0, "a keeper")
	need(o.Election != nil && o.Identity != nil, "an election or an identity")
	need(o.Cluster != "", "the cluster's identity")
	need(o.Contending != nil && o.AllowsNamespace != nil && o.AllowsRawKey != nil, "a rule")
	need(o.APISeen != nil && o.MaxBlindRenew > 0, "a bound for renewing blindly")
	return errors.Join(problems...)
}

// Reconciler brings DistributedLocks closer to what their specs ask for.
type Reconciler struct {
	opts     Options
	now      func() time.Time
	started  time.Time
	memories *memories
	graves   *graves
	endings  *endings
	index    *keepIndex
}

// New returns a Reconciler, or every problem of its options.
func New(o Options) (*Reconciler, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Reconciler{
		opts: o, now: now, started: now(),
		memories: newMemories(), graves: newGraves(now), endings: newEndings(now), index: newKeepIndex(),
	}, nil
}

// Reconcile brings one lock a step closer to what its spec asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p, err := r.observe(ctx, req.NamespacedName)
	if errors.Is(err, errBlind) {
		return ctrl.Result{RequeueAfter: blindLook}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	p.keep(ctx)
	p.keepTicks()
	p.decideTicks()
	snap := p.snapshot()
	dec := plan.Decide(r.now(), snap)
	err = p.act(ctx, snap, dec)
	if err == nil {
		err = p.actTicks(ctx, dec)
	}
	if err == nil {
		err = p.report(ctx, snap, dec)
	}
	if err != nil {
		return p.behind(ctx, err)
	}
	p.mem.outdated = 0
	p.settleMemory(req.NamespacedName)
	if p.again > 0 {
		dec.Revisit = p.again
	}
	dec.Revisit = p.nextTick(dec.Revisit)
	if steady := p.steadyAt.Sub(r.now()); steady > 0 && (dec.Revisit == 0 || steady < dec.Revisit) {
		dec.Revisit = steady
	}
	return ctrl.Result{RequeueAfter: dec.Revisit}, nil
}

// behind turns a write that was refused because the cache lags behind into another look soon. The
// watch brings the news; nothing is wrong.
func (p *pass) behind(ctx context.Context, err error) (ctrl.Result, error) {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Deciding again", "because", err.Error())
	lag := cacheLag << min(p.mem.outdated, 5)
	p.mem.outdated++
	return ctrl.Result{RequeueAfter: lag}, nil
}

// settleMemory drops what is remembered of a lock that is gone and has nothing left to end.
func (p *pass) settleMemory(name types.NamespacedName) {
	if p.lock == nil && p.mem.attempt == nil && p.mem.kept == nil && len(p.mem.leaving) == 0 && len(p.mem.ticks) == 0 &&
		p.mem.orphan.State == "" && p.mem.missingSince.IsZero() {
		p.r.memories.drop(name)
	}
}
