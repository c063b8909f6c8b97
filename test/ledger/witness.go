package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Witness is the protected resource: it accepts writes that carry a fencing token, and refuses any token below the highest it has seen
// of that key. It speaks lines on a loopback port: "<key> <token> <writer>" is answered by "ok <highest>" or "refused <highest>".
type Witness struct {
	listener net.Listener

	mu      sync.Mutex // guards the rest
	highest map[string]int64
	spans   []Span
}

// Span is a run of like writes without another's in between.
type Span struct {
	Key      string
	Token    int64
	Writer   string
	Accepted bool
	First    time.Duration // on the clock of the ledger
	Last     time.Duration
	Count    int
}

// NewWitness listens; Run answers.
func NewWitness() (*Witness, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the witness: %w", err)
	}
	return &Witness{listener: l, highest: map[string]int64{}}, nil
}

// StartWitness runs a witness for the length of a test.
func StartWitness(t testing.TB) *Witness {
	t.Helper()
	w, err := NewWitness()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	return w
}

// Addr is where workers find the witness.
func (w *Witness) Addr() string { return w.listener.Addr().String() }

// Run answers until ctx ends.
func (w *Witness) Run(ctx context.Context) {
	var work sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = w.listener.Close() })
	defer stop()
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			break
		}
		work.Go(func() { w.serve(ctx, conn) })
	}
	work.Wait()
}

func (w *Witness) serve(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var key, writer string
		var token int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %s", &key, &token, &writer); err != nil {
			return
		}
		word := "refused"
		accepted, highest := w.Write(key, token, writer)
		if accepted {
			word = "ok"
		}
		if _, err := fmt.Fprintf(conn, "%s %d\n", word, highest); err != nil {
			return
		}
	}
}

// Write is one write to the resource.
func (w *Witness) Write(key string, token int64, writer string) (accepted bool, highest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	accepted = token >= w.highest[key]
	if accepted {
		w.highest[key] = token
	}
	now := Now()
	if n := len(w.spans) - 1; n >= 0 && w.spans[n].like(key, token, writer, accepted) {
		w.spans[n].Last, w.spans[n].Count = now, w.spans[n].Count+1
	} else {
		w.spans = append(w.spans, Span{Key: key, Token: token, Writer: writer, Accepted: accepted, First: now, Last: now, Count: 1})
	}
	return accepted, w.highest[key]
}

func (s Span) like(key string, token int64, writer string, accepted bool) bool {
	return s.Key == key && s.Token == token && s.Writer == writer && s.Accepted == accepted
}

// Spans returns all writes of a key in order.
func (w *Witness) Spans(key string) []Span {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []Span
	for _, s := range w.spans {
		if s.Key == key {
			found = append(found, s)
		}
	}
	return found
}

// Check fails if two writers used one token of a key. A refused write is no failure by itself: it is what fencing tokens are for.
func (w *Witness) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	type grant struct {
		key   string
		token int64
	}
	var errs []error
	writers := map[grant]string{}
	for _, s := range w.spans {
		g := grant{s.Key, s.Token}
		if first, used := writers[g]; used && first != s.Writer {
			errs = append(errs, fmt.Errorf("key %s: token %d was used by %s and by %s", s.Key, s.Token, first, s.Writer))
			continue
		}
		writers[g] = s.Writer
	}
	return errors.Join(errs...)
}

// Strict is the same witness as a stricter oracle: no write may have been refused either, because a former leader that still writes was
// not dead when the next one began.
func (w *Witness) Strict() Oracle { return strict{w} }

type strict struct{ *Witness }

// Check implements Oracle.
func (s strict) Check() error {
	errs := []error{s.Witness.Check()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.spans {
		if !span.Accepted {
			errs = append(errs, fmt.Errorf("key %s: %d writes of %s with token %d came too late", span.Key, span.Count, span.Writer, span.Token))
		}
	}
	return errors.Join(errs...)
}
