package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"

	"github.com/conch-dev/conch/cmd/internal/backends"
	"github.com/conch-dev/conch/cmd/internal/doctor"
	"github.com/conch-dev/conch/cmd/internal/settings"
	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
)

// stores are the backends and what keeps locks in them, by the name of the backend.
type stores struct {
	backends map[string]lock.Backend
	keepers  map[string]*keeper.Keeper
	doctor   *doctor.Watch
}

// buildStores makes backends and keepers. Observer is asked for once for each backend; it may be nil.
func buildStores(s settings.Settings, nonce string, observer func(backend string) (lock.Observer, error)) (*stores, error) {
	all, err := backends.Open(s)
	if err != nil {
		return nil, err
	}
	out := &stores{backends: all, keepers: map[string]*keeper.Keeper{}}
	patients := map[string]doctor.Patient{}
	for name, b := range all {
		o := keeper.Options{Backend: b, Retry: keeper.Retry{Initial: s.Timings.RetryInitial, Cap: s.Timings.RetryCap}}
		if observer != nil {
			if o.Observer, err = observer(name); err != nil {
				return nil, errors.Join(fmt.Errorf("backend %s: %w", name, err), backends.Close(all))
			}
		}
		k, err := keeper.New(o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("backend %s: %w", name, err), backends.Close(all))
		}
		out.keepers[name] = k
		patients[name] = doctor.Patient{Address: s.Backends[name].Addresses[0], Backend: b}
	}
	out.doctor = doctor.NewWatch(patients, nonce, s.Timings.UnreadyAfter)
	return out, nil
}

func (s *stores) tasks() []task {
	out := []task{{"examine the backends", s.doctor.Run}}
	for _, name := range slices.Sorted(maps.Keys(s.keepers)) {
		out = append(out, task{"keep locks in " + name, s.keepers[name].Run})
	}
	return out
}

// roundDone reports which backend has not answered for everything that was adopted so far.
func (s *stores) roundDone() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.keepers)) {
		if !s.keepers[name].Health().RoundDone {
			problems = append(problems, fmt.Errorf("backend %s: not everything was renewed yet", name))
		}
	}
	return errors.Join(problems...)
}

// tokens are those of all entries of all keepers.
func (s *stores) tokens() map[lock.Token]bool {
	out := map[lock.Token]bool{}
	for _, k := range s.keepers {
		for _, state := range k.States() {
			out[state.Acquired.Grant.Token] = true
		}
	}
	return out
}

func (s *stores) close(log logr.Logger) {
	if err := backends.Close(s.backends); err != nil {
		log.Error(err, "Closing the backends")
	}
}
