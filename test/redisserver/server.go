package redisserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	binary = "redis-server"

	// Ports are chosen below the kernel's range for outgoing connections, so that no client takes the port of a server that is away.
	firstPort = 12000
	lastPort  = 19900
	portTries = 100

	readyWithin = 10 * time.Second
	readyPoll   = 10 * time.Millisecond
	logTail     = 2048
)

var (
	errMissing = errors.New("redis-server is not installed: apt-get install redis-server (or the like), and disable its service")
	errDied    = errors.New("redis-server ended")
)

// Server is one redis-server. Its methods may be called concurrently.
type Server struct {
	port int
	dir  string
	args []string

	mu      sync.Mutex
	process *process // nil while the server is down
}

// Start runs a server until the test ends. Args are those of redis-server, such as "--requirepass", "secret".
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := New(tb.Context(), tb.TempDir(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// New runs a server with dir as its working directory. Whoever calls it ends the server with Kill; ctx only bounds the start.
func New(ctx context.Context, dir string, args ...string) (*Server, error) {
	if _, err := exec.LookPath(binary); err != nil {
		return nil, errMissing
	}
	var err error
	for range portTries {
		s := &Server{port: firstPort + rand.IntN(lastPort-firstPort), dir: dir, args: args}
		if !free(s.Addr()) {
			continue
		}
		if err = s.Restart(ctx); err == nil {
			return s, nil
		}
		if !errors.Is(err, errDied) || free(s.Addr()) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("start %s: no free port in %d tries: %w", binary, portTries, err)
}

// Addr is host:port. It stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", s.Port()) }

// Port is the port alone.
func (s *Server) Port() string { return strconv.Itoa(s.port) }

// Dir is the working directory, where dumps and logs go.
func (s *Server) Dir() string { return s.dir }

// Restart starts the server again on the same port, after killing it if it runs. Without persistence in the arguments it comes back empty.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	args := append([]string{
		"--port", s.Port(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", s.dir, "--logfile", s.log(), "--daemonize", "no",
	}, s.args...)
	p, err := run(args, s.log())
	if err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	if err := s.ready(ctx, p); err != nil {
		p.end()
		return fmt.Errorf("start %s on %s: %w\n%s", binary, s.Addr(), err, tail(s.log()))
	}
	s.process = p
	return nil
}

// Kill ends the server at once, as a crash would, and waits for it. It does nothing if the server is down.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.end()
		s.process = nil
	}
}

// Stop pauses the server: connections stay, and nothing is answered until Cont.
func (s *Server) Stop() error { return s.signal(syscall.SIGSTOP) }

// Cont lets a paused server go on.
func (s *Server) Cont() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return fmt.Errorf("signal %s: the server is down", binary)
	}
	return s.process.cmd.Process.Signal(sig)
}

func (s *Server) log() string { return filepath.Join(s.dir, "redis.log") }

// ready waits until the server answers. What follows may still be told LOADING, or asked for a password.
func (s *Server) ready(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		if answers(ctx, s.Addr()) && p.running() {
			return nil
		}
		select {
		case <-p.done:
			return errDied
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

func answers(ctx context.Context, addr string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// free reports that nobody listens on addr.
func free(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, readyWithin)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

func tail(file string) string {
	text, _ := os.ReadFile(file)
	return string(text[max(0, len(text)-logTail):])
}
