// Command handover times how fast an exclusive lock changes hands in one cluster: from the moment at
// which the API server has the holder's death, to the moment at which it has the next pod without
// its gate. Both are seen by one watch. It starts all that it needs and ends by itself.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/conch-dev/conch/test/program"
)

const (
	// within bounds the whole run, the build of conch aside.
	within = 3 * time.Minute
	// limit is what the 99th percentile has to stay below.
	limit = time.Second
)

func main() {
	n := flag.Int("n", 100, "how many handovers to time")
	program.Quiet()
	program.Main("handover", func(ctx context.Context) error { return run(ctx, *n) })
}

func run(ctx context.Context, n int) error {
	if n < 1 {
		return fmt.Errorf("-n is %d, want at least 1", n)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	fmt.Println(machine())
	s, err := raise(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	times, err := s.handovers(ctx, n)
	if err != nil {
		return fmt.Errorf("%w\n--- conch\n%s", err, s.Conch.Tail(25))
	}
	r := summarize(times)
	fmt.Println(r)
	if r.p99 >= limit {
		return fmt.Errorf("p99 is %s, want less than %s", r.p99, limit)
	}
	return nil
}

// machine says what the figures were taken on; they mean nothing without it.
func machine() string {
	model := "unknown CPU"
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer func() { _ = file.Close() }()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("machine: %s/%s, %d cores of %s, load %s, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, first, runtime.Version())
}
