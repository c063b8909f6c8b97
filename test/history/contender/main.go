// Command contender is one of several processes that want the same key: it acquires, works for a
// while, gives the key back, and begins again. It uses the library as any program would. It writes
// down when it works, so that somebody else can judge whether it was alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
	"github.com/conch-dev/conch/pkg/lock/redisnode"
	"github.com/conch-dev/conch/test/ledger"
)

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", "", "address of Redis")
	flag.StringVar(&o.witness, "witness", "", "address of the resource that checks fencing tokens")
	flag.StringVar(&o.ledger, "ledger", "", "file that gets the intervals of work")
	flag.StringVar(&o.key, "key", "", "key to contend for")
	flag.StringVar(&o.name, "name", "", "name of this contender")
	flag.DurationVar(&o.ttl, "ttl", 0, "time to live of the lock")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.name, err)
		os.Exit(1)
	}
}

type options struct {
	redis, witness, ledger, key, name string
	ttl                               time.Duration
}

func run(ctx context.Context, o options) error {
	backend, err := redisnode.New(redisnode.Options{Addresses: []string{o.redis}, Timeout: o.ttl / 5})
	if err != nil {
		return err
	}
	defer func() { _ = backend.Close() }()
	k, err := keeper.New(keeper.Options{
		Backend: backend, CallTimeout: o.ttl / 3,
		// A key whose holder was killed gives no hint. A short cap makes many tenures of a short run.
		Retry: keeper.Retry{Initial: 50 * time.Millisecond, MinFactor: 1.5, MaxFactor: 2, Cap: 250 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	c, err := newContender(o, k)
	if err != nil {
		return err
	}
	defer c.close()
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	work.Go(func() {
		defer cancel() // without a keeper there is nothing to contend with
		err = k.Run(keeping)
	})
	contendErr := c.contend(ctx)
	stopKeeping()
	work.Wait()
	if contendErr != nil {
		return contendErr
	}
	return err
}

// contend goes from tenure to tenure until ctx ends; the last one is given back too.
func (c *contender) contend(ctx context.Context) error {
	for ctx.Err() == nil {
		c.tenures++
		id := keeper.ID{Key: lock.Key{Name: c.key}, Owner: lock.NewOwner(c.candidate, fmt.Sprint(c.tenures))}
		c.keeper.Acquire(keeper.Want{
			Request: lock.Request{Key: id.Key, Owner: id.Owner, TTL: c.terms.TTL, Floor: c.highest + 1},
			Terms:   c.terms,
		})
		if state := c.await(ctx, id, granted); state.Phase == keeper.PhaseHeld {
			c.highest = state.Acquired.Grant.FencingToken
			if err := c.hold(ctx, id); err != nil {
				return err
			}
		}
		c.leave(ctx, id)
	}
	return nil
}

func granted(p keeper.Phase) bool { return p != keeper.PhaseWaiting }

func left(p keeper.Phase) bool { return p == keeper.PhaseReleased }

// await reads the keeper's news until an entry is in a phase that fits, or ctx ends.
func (c *contender) await(ctx context.Context, id keeper.ID, fits func(keeper.Phase) bool) keeper.State {
	for {
		state, ok := c.keeper.State(id)
		if !ok || fits(state.Phase) {
			return state
		}
		select {
		case <-ctx.Done():
			return keeper.State{}
		case _, running := <-c.keeper.Events():
			if !running {
				return keeper.State{}
			}
		}
	}
}

// leave gives the key back, whatever became of it, and waits until that is done or the key must have run out.
func (c *contender) leave(ctx context.Context, id keeper.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.terms.TTL)
	defer cancel()
	c.keeper.Release(id, lock.Leave{})
	c.await(ctx, id, left)
	c.keeper.Forget(id)
}

func newContender(o options, k *keeper.Keeper) (*contender, error) {
	l, err := ledger.Open(o.ledger)
	if err != nil {
		return nil, err
	}
	w, err := dialWitness(o.witness)
	if err != nil {
		return nil, err
	}
	return &contender{
		key: o.key, name: o.name, candidate: fmt.Sprintf("%s.%d", o.name, os.Getpid()), keeper: k, ledger: l, witness: w,
		terms: keeper.Terms{TTL: o.ttl, RenewInterval: o.ttl / 6},
	}, nil
}
