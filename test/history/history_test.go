// Package history lets three processes contend for one key in a real Redis while they are paused and
// killed at random, and judges what they did from their own ledger.
package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/ledger"
	"github.com/conch-dev/conch/test/proxy"
	"github.com/conch-dev/conch/test/redisserver"
	"github.com/conch-dev/conch/test/rig"
)

const (
	// ttl is short, so that a pause of a second or two outlasts a grant, and a killed holder blocks not for long.
	ttl = 1500 * time.Millisecond
	// distance is how much later Redis answers. Were it near, a process that wakes would hear of its
	// loss before it could do anything wrong, and one that never looks at its grant would pass.
	distance   = 50 * time.Millisecond
	contenders = 3
	key        = "history"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		rig.Clean()
		os.Exit(code)
	}))
}

// length of the history: CONCH_SOAK=full takes half an hour and needs a longer -timeout than go's own.
func length() time.Duration {
	switch os.Getenv("CONCH_SOAK") {
	case "":
		return 10 * time.Second
	case "full":
		return 30 * time.Minute
	}
	return time.Minute
}

// seed is SEED or a random one. It decides when who is paused and killed; the rest is up to the machine.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	t.Logf("SEED=%d", s)
	return s
}

// files is a directory that stays if the test fails.
func files(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "conch-history-") //nolint:usetesting // t.TempDir is removed also after a failure
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("ledger and logs are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

func TestThreeTormentedProcessesNeverWorkAtTheSameTime(t *testing.T) {
	t.Parallel()
	s, dir := seed(t), files(t)
	bin, err := rig.Build(t.Context(), "./test/history/contender", false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(dir + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	witness := ledger.StartWitness(t)
	link := proxy.Start(t, redisserver.Start(t).Addr())
	link.Set(proxy.Rule{Mode: proxy.Delay, Delay: distance})
	command := []string{
		bin, "-redis", link.Addr(), "-witness", witness.Addr(), "-ledger", l.Path(), "-key", key, "-ttl", ttl.String(),
	}
	var all []*tormentor
	for i := range contenders {
		all = append(all, &tormentor{
			command: command, name: fmt.Sprintf("c%d", i), dir: dir, ledger: l, random: rand.New(rand.NewPCG(s, uint64(i))),
		})
	}

	if err := tormentAll(t.Context(), all); err != nil {
		t.Error(err)
	}

	entries, err := l.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var pauses []pause
	kills := 0
	for _, c := range all {
		pauses, kills = append(pauses, c.pauses...), kills+c.kills
	}
	spans := witness.Spans(key)
	if err := judge(entries, spans, pauses); err != nil {
		t.Error(err)
	}
	eventful(t, entries, spans, len(pauses), kills)
	ledger.Verdict(t, witness)
}

func tormentAll(ctx context.Context, all []*tormentor) error {
	ctx, cancel := context.WithTimeout(ctx, length())
	defer cancel()
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, c := range all {
		work.Go(func() { errs[i] = c.run(ctx) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// eventful fails a history in which too little happened to prove anything.
func eventful(t *testing.T, entries []ledger.Entry, spans []ledger.Span, pauses, kills int) {
	t.Helper()
	tenures, workers, refused := map[string]bool{}, map[string]bool{}, 0
	for _, e := range entries {
		if e.Kind == ledger.Start {
			tenures[e.PodUID], workers[e.Pod] = true, true
		}
	}
	for _, s := range spans {
		if !s.Accepted {
			refused++
		}
	}
	t.Logf("%s: %d tenures, %d pauses, %d kills, %d stale writes refused", length(), len(tenures), pauses, kills, refused)
	// Each kill of a holder blocks the key for its ttl, so few tenures are no fault.
	if least := int(length() / (4 * time.Second)); len(tenures) < least || len(workers) < 2 || pauses == 0 {
		t.Errorf("%d tenures of %d contenders and %d pauses, want at least %d, 2 and 1", len(tenures), len(workers), pauses, least)
	}
}
