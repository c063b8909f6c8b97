package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards connections to one server. Its methods may be called concurrently.
type Proxy struct {
	upstream string
	addr     string
	running  sync.WaitGroup

	mu     sync.Mutex
	listen net.Listener // nil while connections are refused
	links  map[*link]struct{}
	rules  []*Rule
	healed chan struct{} // closed by the next Set
	counts map[string]int
	closed bool
}

// Start runs a proxy before upstream until the test ends.
func Start(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	p, err := New(upstream)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// New runs a proxy on a free loopback port. Whoever calls it closes it.
func New(upstream string) (*Proxy, error) {
	p := &Proxy{upstream: upstream, links: map[*link]struct{}{}, healed: make(chan struct{}), counts: map[string]int{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open("127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.addr = p.listen.Addr().String()
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// Set replaces all rules. Replies that are held come now.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	refuse, cut := false, false
	for _, r := range rules {
		p.rules = append(p.rules, &r)
		refuse = refuse || (r.whole() && r.Mode == Refuse)
		cut = cut || (r.whole() && r.Mode == Cut)
	}
	close(p.healed)
	p.healed = make(chan struct{})
	if refuse || cut {
		p.breakLinks()
	}
	if refuse && p.listen != nil {
		_ = p.listen.Close()
		p.listen = nil
	}
	if !refuse && p.listen == nil && !p.closed {
		if err := p.open(p.addr); err != nil {
			panic(fmt.Sprintf("proxy: listen again: %v", err)) // somebody took the port: no test can go on
		}
	}
}

// Heal ends all faults.
func (p *Proxy) Heal() { p.Set() }

// Break closes the connections that are open. New ones work.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakLinks()
}

// Count is how often a command came through or was dropped.
func (p *Proxy) Count(command string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[strings.ToUpper(command)]
}

// Links is how many connections are open.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends everything and waits for it.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	if p.listen != nil {
		_ = p.listen.Close()
		p.listen = nil
	}
	p.breakLinks()
	p.mu.Unlock()
	p.running.Wait()
}

// open listens on addr. The mutex must be held.
func (p *Proxy) open(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	p.listen = l
	p.running.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if p.is(Cut, Refuse) {
			_ = conn.Close()
			continue
		}
		p.connect(conn)
	}
}

// connect begins a link, unless the proxy was closed meanwhile.
func (p *Proxy) connect(client net.Conn) {
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	k := newLink(p, client, server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		k.end()
		return
	}
	p.links[k] = struct{}{}
	p.running.Go(k.run)
}

func (p *Proxy) forget(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, k)
}

func (p *Proxy) nextHeal() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.healed
}

// breakLinks closes both sides of every link. The mutex must be held.
func (p *Proxy) breakLinks() {
	for k := range p.links {
		k.end()
	}
}
