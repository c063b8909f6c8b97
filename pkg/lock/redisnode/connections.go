package redisnode

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// keepAlive finds a dead peer on an idle connection, such as the subscription, before a NAT forgets it.
const keepAlive = 30 * time.Second

// connections are those of one client. They are known so that all can be cut off once an answer turns up that belongs to another
// question: it is not known which of them is out of step.
type connections struct {
	tls *tls.Config

	mu   sync.Mutex
	open map[*connection]struct{}
}

func newConnections(config *tls.Config) *connections {
	return &connections{tls: config, open: map[*connection]struct{}{}}
}

// connection is one of them.
type connection struct {
	net.Conn
	home *connections
}

// socket is a connection that go-redis can look into before it uses it again, to find that the server has closed it.
type socket struct {
	*connection
	syscall.Conn
}

func (c *connections) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	raw, err := c.secure(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, home: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = struct{}{}
	if sys, ok := raw.(syscall.Conn); ok {
		return socket{connection: conn, Conn: sys}, nil
	}
	return conn, nil
}

// handshakeError tells an error of the TLS handshake from one before or after it.
type handshakeError struct{ cause error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.cause.Error() }
func (e *handshakeError) Unwrap() error { return e.cause }

// secure dials, and shakes hands if TLS is configured.
func (c *connections) secure(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	raw, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, addr)
	if err != nil || c.tls == nil {
		return raw, err
	}
	config := c.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &handshakeError{err}
	}
	return conn, nil
}

// Close forgets the connection.
func (c *connection) Close() error {
	c.home.mu.Lock()
	delete(c.home.open, c)
	c.home.mu.Unlock()
	return c.Conn.Close()
}

// cut breaks every connection. The client notices at the next use, and dials again.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
}
