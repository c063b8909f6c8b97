package lock

import "time"

// Observer is told what happens to locks, for metrics. Its methods return at once and may be
// called concurrently.
type Observer interface {
	// Requested reports one call to the store: its name, how long it took and its error.
	Requested(op string, took time.Duration, err error)
	// RenewedLate reports how long after its due time a renewal was sent.
	RenewedLate(late time.Duration)
	// Panicked reports that the keeping of one key panicked and was isolated.
	Panicked(key Key)
	// Lost reports a grant that is no more.
	Lost(key Key, err error)
	// Holding reports how many grants are kept now.
	Holding(n int)
}

// Silent is an Observer that ignores everything.
type Silent struct{}

var _ Observer = Silent{}

func (Silent) Requested(string, time.Duration, error) {}
func (Silent) RenewedLate(time.Duration)              {}
func (Silent) Panicked(Key)                           {}
func (Silent) Lost(Key, error)                        {}
func (Silent) Holding(int)                            {}
