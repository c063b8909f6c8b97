package workloads

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=conch.dev,resources=distributedlocks,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list

// round is how often a marked workload is looked at without a change of its own: somebody may have made a
// disruption budget for it.
const round = time.Hour

// errNotDeciding ends a reconcile whose replica lost the Lease on the way. The next decider starts over.
var errNotDeciding = errors.New("this replica does not decide")

// Election tells whether this replica decides, as of the moment of the call.
type Election interface {
	Deciding() bool
}

// Options are everything that the reconcilers need.
type Options struct {
	Client    client.Client
	APIReader client.Reader
	Recorder  events.EventRecorder
	Election  Election
	// ClusterSet names the clusters that share locks with this one; it may be empty.
	ClusterSet string
}

// Validate reports everything that is missing.
func (o Options) Validate() error {
	var problems []error
	need := func(ok bool, what string) {
		if !ok {
			problems = append(problems, errors.New("workloads: "+what+" is missing"))
		}
	}
	need(o.Client != nil && o.APIReader != nil, "a client or an API reader")
	need(o.Recorder != nil, "an event recorder")
	need(o.Election != nil, "an election")
	return errors.Join(problems...)
}

// Reconciler looks after the workloads of one kind.
type Reconciler struct {
	opts Options
	kind kind
	told *told
	uses *uses
}

// Reconcile sees to it that one workload has its lock, and tells its owner what stands in the way.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !r.opts.Election.Deciding() {
		return ctrl.Result{}, nil // whoever decides next looks at all of them
	}
	s, err := r.read(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.told.forget(req.NamespacedName)
		r.uses.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.mode() == "" || s.object.GetDeletionTimestamp() != nil {
		r.uses.forget(req.NamespacedName)
		r.tell(req.NamespacedName, s, markAdvice(s))
		return ctrl.Result{}, nil
	}
	return r.provide(ctx, req, s)
}

// provide is for a workload that wants a lock.
func (r *Reconciler) provide(ctx context.Context, req ctrl.Request, s *subject) (ctrl.Result, error) {
	r.uses.set(req.NamespacedName, lockKey(s))
	l, err := r.resolve(ctx, s)
	switch {
	case errors.Is(err, errNotDeciding):
		return ctrl.Result{}, nil
	case apierrors.IsAlreadyExists(err): // somebody was quicker, and the watch tells of it
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case apierrors.HasStatusCause(err, namespaceTerminating):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	near, err := r.neighbourAdvice(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	var all []advice
	for _, some := range [][]advice{markAdvice(s), lockAdvice(s, l), shapeAdvice(s, r.opts.ClusterSet), graceAdvice(s, l), near} {
		all = append(all, some...)
	}
	r.tell(req.NamespacedName, s, all)
	return ctrl.Result{RequeueAfter: round}, nil
}
