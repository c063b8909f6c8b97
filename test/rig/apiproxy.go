package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/conch-dev/conch/test/cluster"
)

// APIProxy stands between one conch and its API server, so that a test can see each of its writes,
// stop the world before or after one, or cut the link.
type APIProxy struct {
	server   http.Server
	listener net.Listener
	done     chan struct{}
	cut      atomic.Bool
	// lag is how late the events of watches arrive.
	lag atomic.Int64

	mu     sync.Mutex // guards the rest
	conns  map[net.Conn]struct{}
	writes int
	before func(Write)
	after  func(Write)
}

// Write is one request that changes a lock, a pod or their status. Leases and Events are left out.
type Write struct {
	// N counts the writes of this proxy, from 1.
	N        int
	Method   string
	Resource string // pods, jobs, distributedlocks, with their subresources: distributedlocks/status
	Name     string
}

// StartAPIProxy starts a proxy before a cluster's API server. The caller closes it.
func StartAPIProxy(ctx context.Context, c *cluster.Cluster) (*APIProxy, error) {
	target, err := url.Parse(c.Config().Host)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	// clientcmd keeps credentials back from a plain http server, so the proxy adds conch's own.
	config, err := c.ConfigFor(ctx, Namespace, ServiceAccount)
	if err != nil {
		return nil, fmt.Errorf("ask for conch's credentials: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a transport: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	reverse := httputil.NewSingleHostReverseProxy(target)
	reverse.Transport, reverse.FlushInterval = transport, -1
	reverse.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
	p := &APIProxy{listener: listener, done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.server.Handler, p.server.ConnState = p.handler(reverse), p.track
	go func() {
		defer close(p.done)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("API proxy: %v", err))
		}
	}()
	return p, nil
}

// Close ends the proxy and every connection through it.
func (p *APIProxy) Close() {
	_ = p.server.Close()
	<-p.done
}

// Before and After set what is called around each write. After is called when the API server has
// answered and conch has not heard of it yet.
func (p *APIProxy) Before(f func(Write)) { p.set(func() { p.before = f }) }

// After is described at Before.
func (p *APIProxy) After(f func(Write)) { p.set(func() { p.after = f }) }

func (p *APIProxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Cut refuses every request from now on, and ends the watches that are open; Heal lets all through.
func (p *APIProxy) Cut() {
	p.cut.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// track knows which connections there are.
func (p *APIProxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(p.conns, conn)
	} else {
		p.conns[conn] = struct{}{}
	}
}

// Lag lets everything that watches tell arrive that much later, for watches that begin from now on.
func (p *APIProxy) Lag(by time.Duration) { p.lag.Store(int64(by)) }

// Heal undoes Cut.
func (p *APIProxy) Heal() { p.cut.Store(false) }

func (p *APIProxy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.cut.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if by := time.Duration(p.lag.Load()); by > 0 && r.URL.Query().Get("watch") == "true" {
			late := lagBehind(w, by)
			defer late.end()
			next.ServeHTTP(late, r)
			return
		}
		write, ok := p.count(r)
		p.call(ok, write, func() func(Write) { return p.before })
		next.ServeHTTP(&delayed{ResponseWriter: w, release: func() {
			p.call(ok, write, func() func(Write) { return p.after })
		}}, r)
	})
}

// call runs a hook, outside the mutex because it may take its time.
func (p *APIProxy) call(ok bool, write Write, hook func() func(Write)) {
	if !ok {
		return
	}
	p.mu.Lock()
	f := hook()
	p.mu.Unlock()
	if f != nil {
		f(write)
	}
}

// delayed holds an answer back until release was called.
type delayed struct {
	http.ResponseWriter
	release func()
	once    sync.Once
}

// WriteHeader is the first thing that conch would see of an answer.
func (d *delayed) WriteHeader(code int) {
	d.once.Do(d.release)
	d.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the reverse proxy flush.
func (d *delayed) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// counted are the resources that conch changes to move a lock on.
var counted = []string{"pods", "jobs", "distributedlocks"}

func (p *APIProxy) count(r *http.Request) (Write, bool) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return Write{}, false
	}
	_, path, namespaced := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")
	if !namespaced || len(parts) < 3 || !slices.Contains(counted, parts[1]) {
		return Write{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	w := Write{N: p.writes, Method: r.Method, Resource: parts[1], Name: parts[2]}
	if len(parts) > 3 {
		w.Resource += "/" + parts[3]
	}
	return w, true
}

// kubeconfig is that of conch's service account, with the proxy's address in it.
func (p *APIProxy) kubeconfig(ctx context.Context, c *cluster.Cluster, dir, name string) (string, error) {
	direct, err := serviceKubeconfig(ctx, c)
	if err != nil {
		return "", err
	}
	conf, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		return "", fmt.Errorf("read a kubeconfig: %w", err)
	}
	for _, cl := range conf.Clusters {
		cl.Server = "http://" + p.listener.Addr().String()
		cl.CertificateAuthorityData, cl.CertificateAuthority = nil, ""
	}
	path := filepath.Join(dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*conf, path)
}
