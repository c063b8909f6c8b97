package rig

import (
	"context"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/conch-dev/conch/api/v1alpha1"
	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"
	"github.com/conch-dev/conch/test/redisserver"
)

// StageOptions say what a Stage is for.
type StageOptions struct {
	// Name is the cluster's, and Namespace the one that is made on it.
	Name, Namespace string
	// OnExit, if set, is told of dead processes; see nodeagent.Processes.
	OnExit func(pid int)
	// Redis is the address of one that several stages share, whoever started it. Empty: the stage has its own.
	Redis string
	// ClusterSet and Extra are as in Options.
	ClusterSet, Extra string
}

// Stage is one cluster with nodes that run containers as processes, one Redis and one conch, for
// programs that measure.
type Stage struct {
	Cluster *cluster.Cluster
	Client  client.WithWatch
	Conch   *Conch
	Redis   *redisserver.Server
	// Dir is for files of the program; Close removes it.
	Dir string

	opts      StageOptions
	agent     sync.WaitGroup
	stopAgent context.CancelFunc
}

// Raise starts everything. The caller closes the stage.
func Raise(ctx context.Context, o StageOptions) (*Stage, error) {
	dir, err := os.MkdirTemp("", "conch-"+o.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	s := &Stage{Dir: dir, opts: o}
	for _, step := range []func(context.Context) error{s.startCluster, s.startNodes, s.StartConch, s.ready} {
		if err := step(ctx); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Stage) startCluster(ctx context.Context) error {
	var err error
	if s.opts.Redis == "" {
		if s.Redis, err = redisserver.New(ctx, s.Dir); err != nil {
			return err
		}
		s.opts.Redis = s.Redis.Addr()
	}
	if s.Cluster, err = cluster.Start(ctx, cluster.Options{Name: s.opts.Name}); err != nil {
		return err
	}
	if err := Install(ctx, s.Cluster); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, lockv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register types: %w", err)
		}
	}
	if s.Client, err = client.NewWithWatch(s.Cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.opts.Namespace}})
}

// startNodes runs containers as processes, so that a death takes what a death takes.
func (s *Stage) startNodes(context.Context) error {
	agent, err := nodeagent.New(nodeagent.Options{
		Config: s.Cluster.AgentConfig(), Namespace: s.opts.Namespace, Nodes: 2, Runtime: nodeagent.Processes{OnExit: s.opts.OnExit},
	})
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

// StartConch starts conch, also in place of one that was killed. It does not wait until it is ready.
func (s *Stage) StartConch(ctx context.Context) error {
	c, err := Start(ctx, Options{
		Cluster: s.Cluster, Replica: "conch-0", ClusterID: s.opts.Name, ClusterSet: s.opts.ClusterSet, Redis: s.opts.Redis,
		Extra: s.opts.Extra, Dir: s.Dir,
	})
	if err != nil {
		return err
	}
	s.Conch = c
	return nil
}

func (s *Stage) ready(ctx context.Context) error { return s.Conch.Ready(ctx) }

// Close ends everything in the reverse order, also what was only partly raised.
func (s *Stage) Close() {
	if s.Conch != nil && s.Conch.Alive() {
		_ = s.Conch.Stop()
	}
	if s.stopAgent != nil {
		s.stopAgent()
		s.agent.Wait()
	}
	if s.Cluster != nil {
		s.Cluster.Stop()
	}
	if s.Redis != nil {
		s.Redis.Kill()
	}
	Clean()
	_ = os.RemoveAll(s.Dir)
}
