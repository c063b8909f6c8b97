package controllers

import (
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// Keeper takes orders about grants and tells how they stand. Every method returns at once.
type Keeper interface {
	Acquire(w keeper.Want)
	Adopt(g lock.Grant, t keeper.Terms)
	Retime(id keeper.ID, t keeper.Terms, shorten bool)
	Release(id keeper.ID, how lock.Leave)
	Stamp(id keeper.ID, stage lock.Stage)
	AbandonFor(id keeper.ID, ttl time.Duration)
	Forget(id keeper.ID)
	State(id keeper.ID) (keeper.State, bool)
	Health() keeper.Health
}

var _ Keeper = (*keeper.Keeper)(nil)

// Election tells whether this replica decides, as of the moment of the call.
type Election interface {
	Deciding() bool
	// Epoch numbers the terms of deciders. It rises whenever this replica gets the Lease.
	Epoch() int64
}

// Identity tells whether another cluster uses this cluster's identity.
type Identity interface {
	Conflict() bool
}
