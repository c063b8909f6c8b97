package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/conch-dev/conch/test/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at builds entries: at(3, start("a", 7)) is a start three seconds in.
func at(second int, e ledger.Entry) ledger.Entry {
	e.At = time.Duration(second+1) * time.Second
	return e
}

func start(pid int, pod string, token int64) ledger.Entry {
	return ledger.Entry{Kind: ledger.Start, PID: pid, Key: "k", Cluster: "east", PodUID: pod, Pod: pod, Token: token}
}

func stop(pid int) ledger.Entry { return ledger.Entry{Kind: ledger.Stop, PID: pid} }
func exit(pid int) ledger.Entry { return ledger.Entry{Kind: ledger.Exit, PID: pid} }

func of(e ledger.Entry, mod func(*ledger.Entry)) ledger.Entry {
	mod(&e)
	return e
}

func TestCheck(t *testing.T) {
	t.Parallel()
	job := func(e *ledger.Entry) { e.Tenure = "east/job-1" }
	unmanaged := func(e *ledger.Entry) { e.Unmanaged = true }
	tests := map[string]struct {
		entries []ledger.Entry
		want    []string // a part of each line; nothing for a clean ledger
	}{
		"an empty ledger is clean": {},
		"one after the other with rising tokens is clean": {entries: []ledger.Entry{
			at(0, start(1, "a", 5)), at(1, stop(1)), at(1, exit(1)), at(2, start(2, "b", 6)), at(3, exit(2)),
		}},
		"a start at the moment of the death is clean": {entries: []ledger.Entry{
			at(0, start(1, "a", 5)), at(1, exit(1)), at(1, start(2, "b", 6)),
		}},
		"a start before the death is an overlap": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(2, start(2, "b", 6)), at(3, exit(1))},
			want:    []string{"ran at the same time for 1s"},
		},
		"a worker without an end still runs": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(100, start(2, "b", 6)), at(101, exit(2))},
			want:    []string{"ran at the same time for 1s"},
		},
		"an overlap over a third one is found too": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(1, start(2, "b", 6)), at(2, exit(2)), at(3, start(3, "c", 7)), at(9, exit(1))},
			want:    []string{"east/a (pod a", "east/a (pod a"},
		},
		"an unmanaged worker needs no token": {entries: []ledger.Entry{
			at(0, of(start(1, "a", 0), unmanaged)), at(1, exit(1)), at(2, start(2, "b", 5)), at(3, exit(2)),
			at(4, of(start(3, "c", 0), unmanaged)), at(5, exit(3)), at(6, start(4, "d", 6)),
		}},
		"an unmanaged worker overlaps like any other": {
			entries: []ledger.Entry{at(0, of(start(1, "a", 0), unmanaged)), at(2, start(2, "b", 6)), at(3, exit(1))},
			want:    []string{"ran at the same time for 1s"},
		},
		"other keys do not matter": {entries: []ledger.Entry{
			at(0, start(1, "a", 5)), at(1, of(start(2, "b", 5), func(e *ledger.Entry) { e.Key = "other" })),
		}},
		"the same pod name in another cluster is another holder": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(1, of(start(2, "a", 6), func(e *ledger.Entry) { e.Cluster = "west" })), at(2, exit(2))},
			want:    []string{"west/a"},
		},
		"an equal token of another pod does not rise": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(1, exit(1)), at(2, start(2, "b", 5))},
			want:    []string{"did not rise"},
		},
		"a token below one of long ago does not rise": {
			entries: []ledger.Entry{at(0, start(1, "a", 9)), at(1, exit(1)), at(2, start(2, "b", 10)), at(3, exit(2)), at(4, start(3, "c", 9))},
			want:    []string{"token 9, from 4s still running) after east/b"},
		},
		"a restarted container keeps its pod's token": {entries: []ledger.Entry{
			at(0, start(1, "a", 5)), at(1, exit(1)), at(2, start(2, "a", 5)), at(3, exit(2)),
		}},
		"the workers of one tenure may run together": {entries: []ledger.Entry{
			at(0, of(start(1, "a", 5), job)), at(1, of(start(2, "b", 5), job)), at(2, exit(1)), at(2, exit(2)),
		}},
		"one tenure with two tokens is two tenures": {
			entries: []ledger.Entry{at(0, of(start(1, "a", 5), job)), at(1, of(start(2, "b", 6), job)), at(2, exit(1)), at(2, exit(2))},
			want:    []string{"ran at the same time"},
		},
		"a start without a token is wrong": {
			entries: []ledger.Entry{at(0, start(1, "a", 0)), at(1, exit(1))},
			want:    []string{"without a fencing token"},
		},
		"a process number that was used again is another process": {
			entries: []ledger.Entry{at(0, start(1, "a", 5)), at(1, exit(1)), at(2, start(1, "b", 6)), at(3, start(2, "c", 7)), at(4, exit(1)), at(5, exit(2))},
			want:    []string{"east/b (pod b, pid 1, token 6, from 2s to 4s) and east/c"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := ledger.Check(tc.entries)

			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("got %d complaints, want %d: %v", len(lines), len(tc.want), err)
			}
			for i, part := range tc.want {
				if !strings.Contains(lines[i], part) {
					t.Errorf("complaint %q does not say %q", lines[i], part)
				}
			}
		})
	}
}

func TestALedgerKeepsWhatIsAppended(t *testing.T) {
	t.Parallel()
	l := ledger.New(t)
	want := []ledger.Entry{at(0, start(1, "a", 1_800_000_000_000)), at(1, stop(1)), at(2, exit(1))}
	for _, e := range want {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}

	got, err := l.Entries()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
