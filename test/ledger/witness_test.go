package ledger_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conch-dev/conch/test/ledger"
)

func TestTheWitnessRefusesALowerToken(t *testing.T) {
	t.Parallel()
	w := ledger.StartWitness(t)
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	var got []string
	for _, line := range []string{"k 5 a", "k 5 a", "k 6 b", "k 5 a", "other 1 c"} {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			t.Fatal(err)
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(answer))
	}

	if diff := cmp.Diff([]string{"ok 5", "ok 5", "ok 6", "refused 6", "ok 1"}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	want := []ledger.Span{
		{Key: "k", Token: 5, Writer: "a", Accepted: true, Count: 2},
		{Key: "k", Token: 6, Writer: "b", Accepted: true, Count: 1},
		{Key: "k", Token: 5, Writer: "a", Accepted: false, Count: 1},
	}
	if diff := cmp.Diff(want, w.Spans("k"), cmpopts.IgnoreFields(ledger.Span{}, "First", "Last")); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if err := w.Check(); err != nil {
		t.Errorf("a refused write is no failure by itself: %v", err)
	}
	if err := w.Strict().Check(); err == nil || !strings.Contains(err.Error(), "too late") {
		t.Errorf("a strict witness does not bear it, got %v", err)
	}
}

func TestTwoWritersWithOneTokenAreFound(t *testing.T) {
	t.Parallel()
	w := ledger.StartWitness(t)

	w.Write("k", 5, "a")
	w.Write("k", 5, "b")

	if err := w.Check(); err == nil || !strings.Contains(err.Error(), "used by a and by b") {
		t.Errorf("got %v", err)
	}
}

// silentT keeps what Verdict complains about.
type silentT struct {
	testing.TB
	complaints []string
}

func (s *silentT) Helper() {}
func (s *silentT) Errorf(f string, a ...any) {
	s.complaints = append(s.complaints, fmt.Sprintf(f, a...))
}

func TestVerdictHearsAllOracles(t *testing.T) {
	t.Parallel()
	w, clean := ledger.StartWitness(t), ledger.New(t)
	w.Write("k", 5, "a")
	w.Write("k", 5, "b")
	heard := &silentT{TB: t}

	ledger.Verdict(heard, clean, w)

	if len(heard.complaints) != 1 || !strings.Contains(heard.complaints[0], "token 5 was used") {
		t.Errorf("got %q", heard.complaints)
	}
}
