package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/conch-dev/conch/test/cluster"
	"github.com/conch-dev/conch/test/nodeagent"
	"github.com/conch-dev/conch/test/rig"
)

const (
	namespace  = "demo"
	clusterSet = "demo"
	image      = "example.com/worker:1"
)

// stage is everything that the demo runs.
type stage struct {
	dir        string
	redis      store
	east, west *cluster.Cluster
	conchs     []*rig.Conch
	checks     int
	agents     sync.WaitGroup
	stopAgents context.CancelFunc
}

// build makes sure that the control plane is there, which takes long the first time.
func build(ctx context.Context) error {
	if _, err := cluster.Binaries(); err == nil {
		return nil
	}
	root, err := cluster.ModuleRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack/controlplane/build.sh"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	return nil
}

// raise starts Redis, two clusters with nodes, and conch in both.
func raise(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "conch-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	s := &stage{dir: dir}
	for _, step := range []func(context.Context) error{s.startRedis, s.startClusters, s.startNodes, s.startConch} {
		if err := step(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *stage) startRedis(ctx context.Context) error {
	var err error
	s.redis, err = startStore(ctx)
	if err == nil {
		fmt.Printf("Redis: %s at %s\n", s.redis.name(), s.redis.address())
	}
	return err
}

func (s *stage) startClusters(ctx context.Context) error {
	fmt.Println("Kubernetes: two clusters, east and west, each with its own etcd, API server and controller manager")
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, c := range []**cluster.Cluster{&s.east, &s.west} {
		wg.Go(func() { *c, errs[i] = s.startCluster(ctx, []string{"east", "west"}[i]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *stage) startCluster(ctx context.Context, name string) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, cluster.Options{Name: name})
	if err != nil {
		return nil, err
	}
	if err := rig.Install(ctx, c); err != nil {
		return c, err
	}
	_, err = c.Kubectl(ctx, "create", "namespace", namespace)
	return c, err
}

func (s *stage) startNodes(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopAgents = cancel
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		agent, err := nodeagent.New(nodeagent.Options{
			Config: c.AgentConfig(), Nodes: 2, Images: map[string][]string{image: {"sleep", "3600"}},
		})
		if err != nil {
			return err
		}
		s.agents.Go(func() {
			if err := agent.Run(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "node agent:", err)
			}
		})
	}
	return nil
}

func (s *stage) startConch(ctx context.Context) error {
	fmt.Println("conch: two replicas in the east, one in the west, all of one clusterSet")
	for _, r := range []struct {
		c       *cluster.Cluster
		replica string
	}{{s.east, "conch-0"}, {s.east, "conch-1"}, {s.west, "conch-0"}} {
		c, err := rig.Start(ctx, rig.Options{
			Cluster: r.c, Replica: r.replica, ClusterID: r.c.Name(), ClusterSet: clusterSet, Redis: s.redis.address(), Dir: s.dir,
		})
		if err != nil {
			return err
		}
		s.conchs = append(s.conchs, c)
	}
	for _, c := range s.conchs {
		if err := c.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close ends everything in the reverse order.
func (s *stage) close() {
	for _, c := range s.conchs {
		if c.Alive() {
			_ = c.Stop()
		}
	}
	if s.stopAgents != nil {
		s.stopAgents()
		s.agents.Wait()
	}
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		if c != nil {
			c.Stop()
		}
	}
	if s.redis != nil {
		s.redis.close()
	}
	rig.Clean()
	_ = os.RemoveAll(s.dir)
}

// invite tells how to look around.
func (s *stage) invite() {
	fmt.Println("\nEverything runs on. Interrupt to end it. To look around:")
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		fmt.Printf("  KUBECONFIG=%s %s -n %s get distributedlocks,pods\n", c.Kubeconfig(), c.KubectlPath(), namespace)
	}
	fmt.Printf("  redis-cli -u redis://%s --scan --pattern 'conch:*'\n", s.redis.address())
}

// explain shows what everybody last said, after a failure.
func (s *stage) explain() {
	for _, c := range s.conchs {
		fmt.Fprintf(os.Stderr, "\n--- %s\n%s\n", c.Name, c.Tail(25))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range []*cluster.Cluster{s.east, s.west} {
		out, err := c.Kubectl(ctx, "-n", namespace, "get", "distributedlocks,pods", "-o", "wide")
		fmt.Fprintf(os.Stderr, "\n--- %s\n%s%v\n", c.Name(), out, err)
	}
}

// killDecider kills the replica of the east that decides, and names it.
func (s *stage) killDecider(ctx context.Context) (string, error) {
	who, err := s.decider(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range s.conchs {
		if c.Name == "east-"+who {
			c.Kill()
			return who, nil
		}
	}
	return "", fmt.Errorf("no replica is called %q", who)
}

func (s *stage) decider(ctx context.Context) (string, error) {
	out, err := s.east.Kubectl(ctx, "-n", rig.Namespace, "get", "lease", "conch", "-o", "jsonpath={.spec.holderIdentity}")
	replica, _, _ := strings.Cut(out, "_") // what follows tells a process from its restart
	return replica, err
}

func (s *stage) decides(ctx context.Context, notHim string) error {
	who, err := s.decider(ctx)
	if err == nil && (who == "" || who == notHim) {
		err = fmt.Errorf("%q decides", who)
	}
	return err
}
