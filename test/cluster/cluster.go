package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// startTries bounds the races for ports.
	startTries = 5
	// readyWithin is generous: many clusters may start at once on few cores.
	readyWithin = 90 * time.Second
	// readyEvery is the pause between two looks.
	readyEvery = 25 * time.Millisecond
)

var errPortTaken = errors.New("another process took the port")

// Options say what to start.
type Options struct {
	// Name tells clusters apart in logs and kubeconfigs.
	Name string
	// Dir keeps data, logs, keys and the audit log, and stays after Stop. By default a temporary directory that Stop removes.
	Dir string
	// Binaries is the directory of the four programs. By default Binaries().
	Binaries string
	// Stderr gets the output of all programs besides their log files. By default nothing.
	Stderr io.Writer
}

// Cluster is one running control plane.
type Cluster struct {
	name     string
	dir      string
	temp     bool
	binaries string
	stderr   io.Writer
	ca       []byte
	tokens   map[string]string
	port     int
	etcdPort int

	mu        sync.Mutex // guards the processes
	etcd      *process
	apiServer *process
	manager   *process
}

// Start returns a control plane in which pods can be created. ctx bounds the start only; Stop ends the cluster.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c, err := prepare(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for range startTries {
		if err = c.launch(ctx); err == nil {
			return c, nil
		}
		c.killAll()
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	err = fmt.Errorf("start cluster %s: %w", c.name, err)
	c.Stop()
	return nil, err
}

// prepare fills the directory; nothing runs yet.
func prepare(o Options) (*Cluster, error) {
	c := &Cluster{name: o.Name, dir: o.Dir, binaries: o.Binaries, stderr: o.Stderr, tokens: newTokens()}
	var err error
	if c.binaries == "" {
		if c.binaries, err = Binaries(); err != nil {
			return nil, err
		}
	}
	if c.dir == "" {
		c.temp = true
		c.dir, err = os.MkdirTemp("", "conch-cluster-"+c.name+"-")
	} else {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make the directory of cluster %s: %w", c.name, err)
	}
	if c.ca, err = writeCredentials(c.dir, c.tokens); err != nil {
		return nil, err
	}
	return c, writeFile(filepath.Join(c.dir, policyFile), []byte(auditPolicy))
}

// launch starts all three programs on fresh ports and waits until the controller-manager works.
func (c *Cluster) launch(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.etcdPort, err = freePort(); err != nil {
		return err
	}
	if c.port, err = freePort(); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(c.dir, "etcd")); err != nil {
		return fmt.Errorf("clear the data of an earlier try: %w", err)
	}
	for name, user := range map[string]string{adminConf: AdminUser, managerConf: managerUser} {
		if err := c.writeKubeconfig(filepath.Join(c.dir, name), c.tokens[user]); err != nil {
			return err
		}
	}
	if c.etcd, err = c.run(etcdName, etcdFlags(c.dir, c.etcdPort)); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startManager(); err != nil {
		return err
	}
	return c.await(ctx, c.manager, func(ctx context.Context) bool { return c.podsCreatable(ctx, "default") })
}

// startManager starts the controller-manager. The API server has to be ready: the controller-manager gives it no second chance.
func (c *Cluster) startManager() error {
	var err error
	c.manager, err = c.run(managerName, managerFlags(c.dir))
	return err
}

func (c *Cluster) run(name string, flags []string) (*process, error) {
	return startProcess(c.binaries, c.dir, name, flags, c.stderr)
}

// startAPIServer starts it on the cluster's port and waits until it is ready. The caller holds mu.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	var err error
	if c.apiServer, err = c.run(apiServerName, apiServerFlags(c.dir, c.port, c.etcdPort)); err != nil {
		return err
	}
	probe := c.Config()
	probe.Timeout = time.Second
	client, err := rest.HTTPClientFor(probe)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return c.await(ctx, c.apiServer, func(ctx context.Context) bool { return answersOK(ctx, client, probe.Host+"/readyz") })
}

// await polls ready until it holds, and gives up when ctx ends or one of the programs does.
func (c *Cluster) await(ctx context.Context, p *process, ready func(context.Context) bool) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for !ready(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; its log ends: %s", p.name, ctx.Err(), p.tail())
		case <-p.done:
			return exitError(p)
		case <-c.etcd.done:
			return exitError(c.etcd)
		case <-tick.C:
		}
	}
	return nil
}

func exitError(p *process) error {
	if p.lostPort() {
		return errPortTaken
	}
	return fmt.Errorf("%s ended; its log ends: %s", p.name, p.tail())
}

func answersOK(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode == http.StatusOK
}

// Stop ends the programs that Start started and removes the directory if Start made it.
func (c *Cluster) Stop() {
	c.killAll()
	if c.temp {
		_ = os.RemoveAll(c.dir)
	}
}

// killAll needs no grace, because the data is not kept. The order spares the logs complaints about lost peers.
func (c *Cluster) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range []*process{c.manager, c.apiServer, c.etcd} {
		if p != nil {
			p.kill()
		}
	}
}

// PauseAPIServer stops the API server in its tracks: connections stay open and nobody gets an answer.
func (c *Cluster) PauseAPIServer() error { return c.signalAPIServer(syscall.SIGSTOP) }

// ResumeAPIServer ends a pause.
func (c *Cluster) ResumeAPIServer() error { return c.signalAPIServer(syscall.SIGCONT) }

func (c *Cluster) signalAPIServer(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.signal(sig)
}

// StopAPIServer kills the API server: connections break and new ones are refused.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.kill()
}

// StartAPIServer brings a stopped API server back on the same port with the same data, and returns once it is ready. The
// controller-manager starts anew, as one does that lost its own lease: the old one's informers would wait for up to a minute, and its node
// controller would blame the nodes for heartbeats that nobody could take.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.apiServer.exited() {
		return nil
	}
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("start the API server of %s again: %w", c.name, err)
	}
	c.manager.kill()
	return c.startManager()
}
