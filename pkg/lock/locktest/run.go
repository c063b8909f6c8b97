package locktest

import (
	"testing"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Harness is an empty store and the backend under test.
type Harness struct {
	Backend lock.Backend
	Store   Store
	// Now is the clock by which the backend's grants are valid.
	Now func() time.Time
	// Advance lets time pass, for the store and for Now, without waiting for it.
	Advance func(time.Duration)
}

// Store meddles with what the backend keeps its locks in. Its methods fail the test if they cannot.
type Store interface {
	// Flush loses everything.
	Flush()
	// Delete removes the key alone.
	Delete(lock.Key)
	// Plant puts a value of the kind (string, hash, list) under the key; a ttl of zero means no expiry.
	Plant(key lock.Key, kind, text string, ttl time.Duration)
	// SetFence makes text the highest fencing token of the key, and the only thing known of earlier tenures.
	SetFence(key lock.Key, text string)
}

// clause is one sentence of the contract.
type clause struct {
	name string
	test func(*bench)
}

// Run checks that the backends that newHarness makes keep the contract. Each subtest gets a harness of its own, and they run in parallel.
func Run(t *testing.T, newHarness func(*testing.T) Harness) {
	t.Helper()
	groups := []struct {
		name    string
		clauses []clause
	}{
		{"Acquire", acquireClauses}, {"Fencing", fencingClauses}, {"Foreign", foreignClauses}, {"Since", sinceClauses},
		{"Settle", settleClauses}, {"Carry", carryClauses}, {"Renew", renewClauses}, {"Release", releaseClauses},
		{"Abandon", abandonClauses}, {"Inspect", inspectClauses}, {"Refuse", refuseClauses}, {"Optional", optionalClauses},
		{"Claim", claimClauses}, {"Stamp", stampClauses}, {"PutBack", putBackClauses}, {"Retry", retryClauses}, {"Awaited", awaitedClauses},
	}
	for _, g := range groups {
		for _, c := range g.clauses {
			t.Run(g.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.test(&bench{T: t, Harness: newHarness(t)})
			})
		}
	}
}
