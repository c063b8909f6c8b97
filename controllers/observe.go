package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/controllers/plan"
)

// pass is what one reconcile of one lock knows. It is made anew each time and never shared.
type pass struct {
	ctx  context.Context //nolint:containedctx // a pass lives as long as one reconcile
	r    *Reconciler
	name types.NamespacedName
	now  time.Time
	mem  *memory
	// lock is the object as the cache has it; nil once the API server said that it is gone.
	lock *lockv1alpha1.DistributedLock
	// terms are the effective values; keeper is the one of the lock's backend, nil if unknown.
	terms  terms
	keeper Keeper
	status plan.Status
	// candidates, and the pods they were made from. A vanished holder is a candidate without pod.
	candidates []plan.Candidate
	pods       map[string]*corev1.Pod
	// jobs are the Jobs among the candidates, by UID, and houses the pods of composite ones.
	jobs   map[string]*batchv1.Job
	houses houses
	// mistaken are pods whose mark says nothing that conch knows. They are left alone.
	mistaken []*corev1.Pod
	// kin are the pods of the candidates' workloads that want other locks.
	kin []plan.Kin
	// lineages are the workloads of the candidates, by the UID of the candidate.
	lineages map[string]lineage
	// notes are the scheduled runs that the status knows, by the UID of the Job, and ticks those of this pass.
	notes map[string]noted
	ticks []*tickRun
	// again asks for another pass after this long, where no watch or keeper tells of what happened.
	again time.Duration
	// steadyAt is when the first candidate that was restarted counts as running again; zero if none was.
	steadyAt time.Time
}

// observe reads everything that the decision is based on, and changes nothing but what this
// process remembers.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*pass, error) {
	p := &pass{
		ctx: ctx, r: r, name: name, now: r.now(), mem: r.memories.of(name),
		pods: map[string]*corev1.Pod{}, jobs: map[string]*batchv1.Job{}, houses: houses{}, lineages: map[string]lineage{},
	}
	if err := p.readLock(ctx); err != nil {
		return nil, err
	}
	if p.ours() && r.blind(p.now, p.status, p.terms.lock.StartDeadline) {
		p.dropKept()
		return nil, errBlind
	}
	p.recallOrphan()
	for _, read := range []func(context.Context) error{p.readPods, p.readJobs, p.readWorkloads} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	p.adoptOrphan()
	if err := p.readHolder(ctx); err != nil {
		return nil, err
	}
	if err := p.readTicks(ctx); err != nil {
		return nil, err
	}
	p.forgetGone()
	for _, read := range []func(context.Context) error{p.refuseInherited, p.readKin, p.readStrays} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	return p, p.readNodes(ctx)
}

// readLock reads the object and its effective values. An object that the cache lacks is looked up
// at the API server before it counts as gone.
func (p *pass) readLock(ctx context.Context) error {
	var l lockv1alpha1.DistributedLock
	err := p.r.opts.Client.Get(ctx, p.name, &l)
	if apierrors.IsNotFound(err) {
		err = p.r.opts.APIReader.Get(ctx, p.name, &l)
	}
	switch {
	case apierrors.IsNotFound(err):
		if p.mem.terms != nil {
			p.terms = *p.mem.terms
		} else {
			p.terms = p.r.termsWithoutObject(p.name)
		}
		p.terms.lock.Gone = true
	case err != nil:
		return fmt.Errorf("read lock %s: %w", p.name, err)
	default:
		p.lock = &l
		p.terms = p.r.termsOf(&l)
		p.mem.terms = &p.terms
		p.status, p.notes = readStatus(&l), readNotes(&l, p.r.opts.Cluster)
		p.mem.last, p.mem.orphan = p.status, plan.Status{}
	}
	p.keeper = p.r.opts.Keepers[p.terms.backend]
	return nil
}

// readPods makes candidates of the marked pods that name this lock.
func (p *pass) readPods(ctx context.Context) error {
	var list corev1.PodList
	if err := p.r.opts.Client.List(ctx, &list, client.InNamespace(p.name.Namespace), client.MatchingFields{lockField: p.name.Name}); err != nil {
		return fmt.Errorf("list the pods of lock %s: %w", p.name, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if !knownMark(pod) {
			p.mistaken = append(p.mistaken, pod)
			continue
		}
		from, err := p.r.lineageOf(ctx, pod)
		if err != nil {
			return err
		}
		if p.house(pod, from) {
			continue
		}
		p.lineages[string(pod.UID)] = from
		c := p.candidate(pod, true)
		p.pods[c.UID] = pod
		p.candidates = append(p.candidates, c)
	}
	return nil
}

// readHolder makes sure that the holder is among the candidates, looking at the API server itself
// where the cache does not have it.
func (p *pass) readHolder(ctx context.Context) error {
	if !p.ours() || p.indexOf(p.status.Holder.UID) >= 0 {
		return nil
	}
	if k := p.status.Holder.Kind; k == plan.KindJob || isWorkload(k) {
		return p.missingComposite(ctx)
	}
	c, err := p.missingHolder(ctx)
	if err != nil {
		return err
	}
	p.candidates = append(p.candidates, c)
	return nil
}

// missingHolder looks for a holder that the cache does not show: unmarked, deleted, or not seen yet.
func (p *pass) missingHolder(ctx context.Context) (plan.Candidate, error) {
	h := p.status.Holder
	uid := types.UID(h.UID)
	var pod corev1.Pod
	err := p.r.opts.APIReader.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, &pod)
	switch {
	case err == nil && pod.UID == uid:
		firstSeen(p.mem.vanished, uid, false, p.now)
		c := p.candidate(&pod, false)
		p.pods[c.UID] = &pod
		return c, nil
	case err != nil && !apierrors.IsNotFound(err):
		return plan.Candidate{}, fmt.Errorf("look for the holder of lock %s: %w", p.name, err)
	}
	c := plan.Candidate{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name, UID: h.UID, NodeName: h.Node}
	if last := p.r.graves.find(uid); last != nil {
		c = p.candidate(last, true)
		c.Body = bodyOf(last, false)
	}
	c.Body.Exists = false
	if c.Body.Grace == 0 {
		c.Body.Grace = max(h.Grace, time.Second)
	}
	c.Body.VanishedAt = firstSeen(p.mem.vanished, uid, true, p.now)
	return c, nil
}

// candidate translates a pod.
func (p *pass) candidate(pod *corev1.Pod, marked bool) plan.Candidate {
	uid := string(pod.UID)
	ann := pod.Annotations
	c := plan.Candidate{
		Kind: plan.KindPod, Namespace: pod.Namespace, Name: pod.Name, UID: uid,
		Mode: modeOf(pod), Created: pod.CreationTimestamp.Time, Overridden: ann[lockv1alpha1.AnnotationOverride] != "",
		Gated: gated(pod), Leading: pod.Labels[lockv1alpha1.LabelRole] == lockv1alpha1.RoleLeader,
		Record: ann[lockv1alpha1.AnnotationHolderIdentity], RecordToken: fencingToken(ann[lockv1alpha1.AnnotationFencingToken]),
		Ended:    fencingToken(ann[lockv1alpha1.AnnotationEnded]),
		NodeName: pod.Spec.NodeName, Marked: marked, Body: bodyOf(pod, true),
	}
	if c.Record != "" {
		c.RecordedToken = fmt.Sprintf("%s#%d", c.Record, c.RecordToken)
	}
	c.Group, c.Revision = p.lineages[uid].group(pod)
	c.Ready, c.ReadySince = p.steadiness(pod)
	stood := p.mem.backOff[kindred(c)]
	c.BackOffUntil, c.GaveUp = stood.until, stood.gaveUp
	formerLeader := c.Mode == plan.Leader && !c.Leading && p.status.State == plan.Fencing && p.status.Holder.UID == uid
	c.UnlabelledSince = firstSeen(p.mem.unlabelled, pod.UID, formerLeader, p.now)
	return c
}

func (p *pass) indexOf(uid string) int {
	for i := range p.candidates {
		if p.candidates[i].UID == uid {
			return i
		}
	}
	return -1
}

func (p *pass) ours() bool { return p.status.Ours(p.r.opts.Cluster) }

// snapshot puts together what observe found.
func (p *pass) snapshot() plan.Snapshot {
	// A cache lists in any order, and what the status says of kin must not change with it.
	slices.SortFunc(p.kin, func(a, b plan.Kin) int { return cmp.Compare(a.UID, b.UID) })
	return plan.Snapshot{
		Lock: p.terms.lock, Status: p.status, Candidates: p.candidates, Kin: p.kin, Store: p.observeStore(),
		Self: plan.Self{
			Cluster: p.r.opts.Cluster, Deciding: p.r.opts.Election.Deciding(),
			Contending: p.r.opts.Contending(), IdentityConflict: p.r.opts.Identity.Conflict(),
		},
	}
}

// knownMark reports whether a pod's mark is one that conch acts on.
func knownMark(pod *corev1.Pod) bool {
	switch pod.Labels[lockv1alpha1.LabelSingleton] {
	case lockv1alpha1.SingletonLeader, lockv1alpha1.SingletonExclusive, lockv1alpha1.SingletonActivePassive:
		return true
	}
	return false
}

func modeOf(pod *corev1.Pod) plan.Mode {
	if pod.Labels[lockv1alpha1.LabelSingleton] == string(plan.Leader) {
		return plan.Leader
	}
	return plan.Exclusive
}

func gated(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.SchedulingGates {
		if g.Name == lockv1alpha1.GateLock {
			return true
		}
	}
	return false
}

func fencingToken(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
