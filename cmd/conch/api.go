package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// qps and burst keep a storm of changed pods from piling up behind client-go's default of 20;
	// the API server has its own fairness.
	qps   = 200
	burst = 400

	namespaceFile    = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	defaultNamespace = "conch-system"
)

// restConfig finds the API server and notes when it last answered.
func restConfig(kubeconfig string, seen *lastSeen) (*rest.Config, error) {
	cfg, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	cfg.QPS, cfg.Burst = qps, burst
	cfg.UserAgent = "conch/" + version
	cfg.Wrap(seen.wrap)
	return cfg, nil
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	return ctrl.GetConfig()
}

// withoutLimits is for the Lease, whose writes must not wait behind others.
func withoutLimits(cfg *rest.Config) *rest.Config {
	own := rest.CopyConfig(cfg)
	own.QPS = -1
	return own
}

// ownNamespace is where this pod runs, or where conch is usually installed.
func ownNamespace() string {
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data))
	}
	return defaultNamespace
}

// lastSeen is when the API server last answered. Every replica asks it for the Lease every second or
// two, so it is fresh while the API server can be reached.
type lastSeen struct{ at atomic.Pointer[time.Time] }

// Time returns it; zero if there was no answer yet.
func (s *lastSeen) Time() time.Time {
	if t := s.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

func (s *lastSeen) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		sent := time.Now()
		resp, err := next.RoundTrip(r)
		if err == nil && resp.StatusCode < http.StatusInternalServerError {
			s.at.Store(&sent)
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
