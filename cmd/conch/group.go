package main

import (
	"context"
	"fmt"
	"sync"
)

// task is a part of the process that runs until its context ends.
type task struct {
	name string
	run  func(context.Context) error
}

// group is a number of tasks that end together.
type group struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

// startGroup starts tasks. One that fails ends the process through failed.
func startGroup(ctx context.Context, failed context.CancelCauseFunc, tasks []task) *group {
	ctx, cancel := context.WithCancel(ctx)
	g := &group{cancel: cancel}
	for _, t := range tasks {
		g.all.Go(func() {
			if err := t.run(ctx); err != nil && ctx.Err() == nil {
				failed(fmt.Errorf("%s: %w", t.name, err))
			}
		})
	}
	return g
}

// stop ends the tasks and waits for them.
func (g *group) stop() {
	g.cancel()
	g.all.Wait()
}
