package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/conch-dev/conch/test/cluster"
)

const (
	readyWithin = 60 * time.Second
	readyEvery  = 25 * time.Millisecond
	stopWithin  = 20 * time.Second
)

// Options say how a replica of conch is to run.
type Options struct {
	Cluster *cluster.Cluster
	// Replica tells replicas apart in the Lease and in log files.
	Replica string
	// ClusterID and ClusterSet are this cluster's identity; ClusterSet may be empty.
	ClusterID, ClusterSet string
	// Redis is the address of the default backend, host:port.
	Redis string
	// Namespaces that this conch is limited to; several conchs can then share one cluster.
	Namespaces []string
	// LeaseName tells groups of replicas apart; conch by default.
	LeaseName string
	// Extra is YAML that is added to the configuration at top level.
	Extra string
	// Proxy, if set, is how this conch reaches the API server.
	Proxy *APIProxy
	// Race builds the race detector in.
	Race bool
	// Dir keeps configuration and log.
	Dir string
}

// Conch is one running replica.
type Conch struct {
	Name   string
	health string
	config string
	log    string
	cmd    *exec.Cmd

	done chan struct{}
	mu   sync.Mutex // guards err
	err  error
}

// Start runs a replica of conch as its own process, which dies with this one.
func Start(ctx context.Context, o Options) (*Conch, error) {
	bin, err := Build(ctx, "./cmd/conch", o.Race)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := o.kubeconfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a kubeconfig for conch: %w", err)
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	name := o.Cluster.Name() + "-" + o.Replica
	c := &Conch{Name: name, health: health, log: filepath.Join(o.Dir, name+".log"), done: make(chan struct{})}
	c.config = filepath.Join(o.Dir, name+".yaml")
	if err := os.WriteFile(c.config, []byte(o.yaml(health)), 0o600); err != nil {
		return nil, fmt.Errorf("write conch's configuration: %w", err)
	}
	return c, c.launch(bin, kubeconfig, o.Replica)
}

func (o Options) kubeconfig(ctx context.Context) (string, error) {
	if o.Proxy != nil {
		return o.Proxy.kubeconfig(ctx, o.Cluster, o.Dir, o.Cluster.Name()+"-"+o.Replica)
	}
	return serviceKubeconfig(ctx, o.Cluster)
}

func (o Options) yaml(health string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "clusterId: %s\n", o.ClusterID)
	if o.ClusterSet != "" {
		fmt.Fprintf(&b, "clusterSet: %s\n", o.ClusterSet)
	}
	if len(o.Namespaces) > 0 {
		fmt.Fprintf(&b, "namespaces: [%s]\n", strings.Join(o.Namespaces, ", "))
	}
	lease := o.LeaseName
	if lease == "" {
		lease = "conch"
	}
	fmt.Fprintf(&b, "leaseName: %s\nleaseNamespace: %s\n", lease, Namespace)
	fmt.Fprintf(&b, "healthAddress: %s\nmetricsAddress: \"0\"\n", health)
	if o.Redis != "" {
		fmt.Fprintf(&b, "backends:\n  default:\n    addresses: [%q]\n", o.Redis)
	}
	return b.String() + o.Extra
}

func (c *Conch) launch(bin, kubeconfig, identity string) error {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", c.Name, err)
	}
	defer func() { _ = log.Close() }()
	c.cmd = exec.Command(bin, "--config", c.config, "--kubeconfig", kubeconfig, "--identity", identity)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go c.live(started)
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	return nil
}

// live starts the process and stays until it has ended, on one thread: the kernel sends the
// parent-death signal when the thread that forked ends.
func (c *Conch) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = c.cmd.Wait()
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(c.done)
}

// Configure adds lines to the configuration, which conch takes up while it runs.
func (c *Conch) Configure(lines string) error {
	before, err := os.ReadFile(c.config)
	if err != nil {
		return fmt.Errorf("read the configuration of %s: %w", c.Name, err)
	}
	whole := c.config + ".new"
	if err := os.WriteFile(whole, append(before, lines...), 0o600); err != nil {
		return fmt.Errorf("write the configuration of %s: %w", c.Name, err)
	}
	return os.Rename(whole, c.config)
}

// Ready waits until the replica says that it is ready.
func (c *Conch) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", c.Name, ctx.Err(), c.Tail(15))
		case <-c.done:
			return fmt.Errorf("%s has ended before it was ready: %w\n%s", c.Name, c.exit(), c.Tail(15))
		case <-tick.C:
			if c.answers("/readyz") {
				return nil
			}
		}
	}
}

// IsReady asks once.
func (c *Conch) IsReady() bool { return c.answers("/readyz") }

func (c *Conch) answers(path string) bool {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get("http://" + c.health + path)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Alive reports whether the process runs.
func (c *Conch) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Kill ends the replica with SIGKILL and waits until it is gone.
func (c *Conch) Kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	<-c.done
}

// Stop ends the replica with SIGTERM, as an upgrade does, and with SIGKILL if that takes too long.
func (c *Conch) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
		return c.exit()
	case <-time.After(stopWithin):
		c.Kill()
		return errors.New(c.Name + " did not end in time and was killed")
	}
}

// Pause and Resume stop and continue the process.
func (c *Conch) Pause() error { return c.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (c *Conch) Resume() error { return c.cmd.Process.Signal(syscall.SIGCONT) }

func (c *Conch) exit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Log returns everything that the replica wrote.
func (c *Conch) Log() string {
	raw, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Tail returns the last lines of the log.
func (c *Conch) Tail(n int) string {
	lines := strings.Split(strings.TrimSpace(c.Log()), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
