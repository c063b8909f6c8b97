package ledger

import "testing"

// Oracle judges what it has seen so far.
type Oracle interface{ Check() error }

// Verdict fails the test with everything that the oracles hold against it. It is the last line of every safety test.
func Verdict(t testing.TB, oracles ...Oracle) {
	t.Helper()
	for _, o := range oracles {
		if err := o.Check(); err != nil {
			t.Errorf("verdict of %T:\n%v", o, err)
		}
	}
}

// New opens a ledger for the length of a test.
func New(t testing.TB) *Ledger {
	t.Helper()
	l, err := Open(t.TempDir() + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
