package nodeagent_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// flag answers readiness probes as it is told to.
type flag struct {
	up   atomic.Bool
	port int
}

func newFlag(t *testing.T) *flag {
	t.Helper()
	f := &flag{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !f.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	f.port = server.Listener.Addr().(*net.TCPAddr).Port
	return f
}
