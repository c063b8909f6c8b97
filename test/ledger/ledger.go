package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of entries.
const (
	Start = "start" // a worker is about to work
	Stop  = "stop"  // it has stopped working
	Exit  = "exit"  // its process is dead, as its runtime saw it
)

// Entry is one line of the ledger.
type Entry struct {
	Kind string        `json:"kind"`
	At   time.Duration `json:"at"` // on the monotonic clock
	PID  int           `json:"pid"`
	// Only on start:
	Key     string `json:"key,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	PodUID  string `json:"podUID,omitempty"`
	Pod     string `json:"pod,omitempty"`
	// Tenure joins workers that may run together under one token: the pods of a Job or of an active-passive workload. Empty: the pod's own.
	Tenure string `json:"tenure,omitempty"`
	// Token is the fencing token; 0 if the worker was given none.
	Token int64 `json:"token,omitempty"`
	// Unmanaged is true for a worker that nothing starts or fences: its workload was not marked yet, or an operator let it past the gate.
	// It has no fencing token, and must not overlap with anybody all the same.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// Now reads the clock of the ledger.
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(fmt.Sprintf("read the monotonic clock: %v", err)) // no Linux refuses it
	}
	return time.Duration(now.Nano())
}

// Ledger is a file to which any number of processes append.
type Ledger struct{ file *os.File }

// Open opens a ledger and creates it if it is new.
func Open(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &Ledger{file: file}, nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }

// Path of the file, for the workers.
func (l *Ledger) Path() string { return l.file.Name() }

// Append writes an entry, in one write. It stamps the entry with the time if that is not set.
func (l *Ledger) Append(e Entry) error {
	if e.At == 0 {
		e.At = Now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode a ledger entry: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	return nil
}

// Exited notes that a process is dead. Whoever runs workers calls it after the death and before the number can be used again. Its
// signature is that of nodeagent.Processes.OnExit; a ledger that cannot be written makes every verdict void, hence the panic.
func (l *Ledger) Exited(pid int) {
	if err := l.Append(Entry{Kind: Exit, PID: pid}); err != nil {
		panic(err)
	}
}

// Entries reads the whole ledger in the order of writing.
func (l *Ledger) Entries() ([]Entry, error) {
	raw, err := os.ReadFile(l.Path())
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var entries []Entry
	for line := range bytes.Lines(raw) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read ledger line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Check judges what the ledger holds now.
func (l *Ledger) Check() error {
	entries, err := l.Entries()
	if err != nil {
		return err
	}
	return Check(entries)
}
