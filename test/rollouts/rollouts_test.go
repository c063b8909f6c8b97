package main

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRolloutsOfEveryKindNeitherOverlapNorGetStuck(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := raise(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()

	r, err := s.rollAll(ctx, 2)
	for _, line := range r.details {
		t.Log(line)
	}
	if err != nil || r.overlaps > 0 || r.stuck > 0 {
		t.Fatalf("%s: %v\n--- conch\n%s", r, err, s.Conch.Tail(60))
	}
	if want := 2 * len(kinds()); r.rollouts != want {
		t.Errorf("%d rollouts, want %d", r.rollouts, want)
	}
}
