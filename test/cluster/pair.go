package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// Names of the clusters of a Pair.
const (
	EastName = "east"
	WestName = "west"
)

// Pair is two clusters that all tests of one test binary share. They start when the first test asks, so that a run of pure tests costs
// nothing, and end after the last test. Tests that stop an API server start a cluster of their own.
//
//	var clusters cluster.Pair
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(clusters.Around(m)) }
//
//	func TestSomething(t *testing.T) { east, west := clusters.Start(t) ... }
type Pair struct {
	mu         sync.Mutex // guards the rest
	started    bool
	err        error
	east, west *Cluster
}

// Runner is what *testing.M and goleak agree on.
type Runner interface{ Run() int }

// Around returns a Runner that runs m and then stops the pair.
func (p *Pair) Around(m Runner) Runner { return around{pair: p, tests: m} }

type around struct {
	pair  *Pair
	tests Runner
}

// Run runs the tests and stops the pair.
func (a around) Run() int {
	defer a.pair.stop()
	return a.tests.Run()
}

// Start returns both clusters and starts them if no test did before.
func (p *Pair) Start(t testing.TB) (east, west *Cluster) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		p.started = true
		p.err = p.launch(t.Context())
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.east, p.west
}

// launch starts both at the same time. The caller holds mu.
func (p *Pair) launch(ctx context.Context) error {
	var eastErr, westErr error
	var wg sync.WaitGroup
	wg.Go(func() { p.east, eastErr = Start(ctx, Options{Name: EastName}) })
	wg.Go(func() { p.west, westErr = Start(ctx, Options{Name: WestName}) })
	wg.Wait()
	return errors.Join(eastErr, westErr)
}

func (p *Pair) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []*Cluster{p.east, p.west} {
		if c != nil {
			c.Stop()
		}
	}
}
