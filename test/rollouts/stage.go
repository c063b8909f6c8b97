package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/ledger/leaders"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace = "rollouts"
	// version is an annotation of the template: changing it is the rollout.
	version = "test/version"
)

// stage is where the rollouts take place, with what judges them.
type stage struct {
	*rig.Stage
	worker  string
	ledger  *ledger.Ledger
	leaders *leaders.Leaders
	stop    func()
}

// raise starts everything. The caller closes the stage.
func raise(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "conch-ledger-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	l, err := ledger.Open(filepath.Join(dir, "ledger"))
	if err != nil {
		return nil, err
	}
	r, err := rig.Raise(ctx, rig.StageOptions{Name: "rollouts", Namespace: namespace, OnExit: l.Exited})
	if err != nil {
		return nil, err
	}
	s := &stage{Stage: r, ledger: l, stop: func() {}}
	if err := s.watch(); err != nil {
		s.close()
		return nil, err
	}
	s.worker, err = rig.Build(ctx, "./test/worker", false)
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// watch begins to follow the leaders.
func (s *stage) watch() error {
	c, err := kubernetes.NewForConfig(s.Cluster.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait func()
	if s.leaders, wait, err = leaders.Follow(ctx, c, namespace); err != nil {
		cancel()
		return err
	}
	s.stop = sync.OnceFunc(func() { cancel(); wait() })
	return nil
}

func (s *stage) close() {
	s.stop()
	s.Close()
	_ = s.ledger.Close()
	_ = os.RemoveAll(filepath.Dir(s.ledger.Path()))
}

// create makes the lock and the workload of a kind.
func (s *stage) create(ctx context.Context, k kind) error {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: k.name}}
	l.Spec.TTL = &metav1.Duration{Duration: 15 * time.Second}
	if err := s.Client.Create(ctx, l); err != nil {
		return fmt.Errorf("create the lock %s: %w", k.name, err)
	}
	if err := s.Client.Create(ctx, s.workload(k)); err != nil {
		return fmt.Errorf("create the workload %s: %w", k.name, err)
	}
	return nil
}

func (s *stage) workload(k kind) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: k.name}
	if k.set == nil {
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &k.replicas, Strategy: k.strategy, Selector: k.selector(), Template: s.template(k),
		}}
	}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: *k.set}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template, set.Spec.ServiceName = &k.replicas, k.selector(), s.template(k), k.name
	return set
}

func (s *stage) template(k kind) corev1.PodTemplateSpec {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": k.name, lockv1alpha1.LabelSingleton: k.mode},
			Annotations: map[string]string{lockv1alpha1.AnnotationLock: k.name, version: "0"},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []corev1.Container{{
				Name: "worker", Image: "worker", Command: []string{s.worker, "exclusive", "-ledger", s.ledger.Path()},
				Env: []corev1.EnvVar{
					{Name: "CONCH_KEY", Value: k.name}, {Name: "CONCH_CLUSTER", Value: s.Cluster.Name()},
					field("CONCH_FENCING_TOKEN", fmt.Sprintf("metadata.annotations['%s']", lockv1alpha1.AnnotationFencingToken)),
					field("POD_UID", "metadata.uid"), field("POD_NAME", "metadata.name"),
				},
			}},
		},
	}
	if k.mode == lockv1alpha1.SingletonActivePassive {
		env := &t.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "CONCH_TENURE", Value: k.name}) // its replicas run together
	}
	if k.mode == lockv1alpha1.SingletonLeader {
		t.Spec.Containers[0].Command = []string{"sleep", "3600"}
		return t
	}
	t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}}
	return t
}
