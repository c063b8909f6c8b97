package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace = "handover"
	lockName  = "job"
	// replicas is one holder and enough standbys that one is always there, also while the
	// ReplicaSet controller replaces the pod that just died.
	replicas = 4
)

// stage is one cluster with nodes, one Redis and one conch.
type stage struct {
	dir       string
	redis     *redisserver.Server
	cluster   *cluster.Cluster
	client    client.WithWatch
	conch     *rig.Conch
	agent     sync.WaitGroup
	stopAgent context.CancelFunc
}

// raise starts everything and creates the lock and its pods. The caller closes the stage.
func raise(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "conch-handover-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	s := &stage{dir: dir}
	for _, step := range []func(context.Context) error{s.startCluster, s.startNodes, s.startConch, s.createPods} {
		if err := step(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *stage) startCluster(ctx context.Context) error {
	var err error
	if s.redis, err = redisserver.New(ctx, s.dir); err != nil {
		return err
	}
	if s.cluster, err = cluster.Start(ctx, cluster.Options{Name: "bench"}); err != nil {
		return err
	}
	if err := rig.Install(ctx, s.cluster); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, lockv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register types: %w", err)
		}
	}
	if s.client, err = client.NewWithWatch(s.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// startNodes runs containers as processes, so that a death takes what a death takes.
func (s *stage) startNodes(context.Context) error {
	agent, err := nodeagent.New(nodeagent.Options{Config: s.cluster.AgentConfig(), Namespace: namespace, Nodes: 2})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopAgent = cancel
	s.agent.Go(func() {
		if err := agent.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "node agent:", err)
		}
	})
	return nil
}

func (s *stage) startConch(ctx context.Context) error {
	var err error
	s.conch, err = rig.Start(ctx, rig.Options{
		Cluster: s.cluster, Replica: "conch-0", ClusterID: "bench", Redis: s.redis.Addr(), Dir: s.dir,
	})
	if err != nil {
		return err
	}
	return s.conch.Ready(ctx)
}

func (s *stage) createPods(ctx context.Context) error {
	l := &lockv1alpha1.DistributedLock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lockName}}
	l.Spec.TTL = &metav1.Duration{Duration: 15 * time.Second}
	if err := s.client.Create(ctx, l); err != nil {
		return fmt.Errorf("create the lock: %w", err)
	}
	labels := map[string]string{"app": lockName}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lockName}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](replicas),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{"app": lockName, lockv1alpha1.LabelSingleton: lockv1alpha1.SingletonExclusive},
				Annotations: map[string]string{lockv1alpha1.AnnotationLock: lockName},
			},
			Spec: corev1.PodSpec{
				SchedulingGates:               []corev1.PodSchedulingGate{{Name: lockv1alpha1.GateLock}},
				TerminationGracePeriodSeconds: ptr.To[int64](2),
				Containers:                    []corev1.Container{{Name: "job", Image: "job", Command: []string{"sleep", "3600"}}},
			},
		},
	}
	if err := s.client.Create(ctx, d); err != nil {
		return fmt.Errorf("create the pods: %w", err)
	}
	return nil
}

// close ends everything in the reverse order, also what was only partly raised.
func (s *stage) close() {
	if s.conch != nil && s.conch.Alive() {
		_ = s.conch.Stop()
	}
	if s.stopAgent != nil {
		s.stopAgent()
		s.agent.Wait()
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
	if s.redis != nil {
		s.redis.Kill()
	}
	rig.Clean()
	_ = os.RemoveAll(s.dir)
}
