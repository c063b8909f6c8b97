package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
	"github.com/conch-dev/conch/pkg/lock/keeper"
	"github.com/conch-dev/conch/test/ledger"
)

const (
	// unit is how long one piece of work takes.
	unit = 15 * time.Millisecond
	// reserve is the least that a grant must have left when a piece begins: the piece fits several
	// times, so a process that nobody stops is done before its grant ends.
	reserve = 10 * unit
	// A tenure is that many pieces. Were it a time, it would be over after any long pause.
	fewest = 3
	most   = 40
)

type contender struct {
	key, name, candidate string
	keeper               *keeper.Keeper
	ledger               *ledger.Ledger
	witness              *witness
	terms                keeper.Terms
	tenures              int
	highest              lock.FencingToken
}

func (c *contender) close() {
	_ = c.witness.conn.Close()
	_ = c.ledger.Close()
}

// hold works piece by piece until the tenure has been long enough, the grant is in doubt, or ctx ends.
func (c *contender) hold(ctx context.Context, id keeper.ID) error {
	for range fewest + rand.IntN(most-fewest) {
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if goOn, err := c.piece(id); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// piece is one unit of work between two looks at the grant. It is noted as begun before the first
// look: had the process been stopped between look and note, the grant might have ended by then. It
// tells whether the grant still stood at its end; what was written when it did not is for the
// witness to refuse.
func (c *contender) piece(id keeper.ID) (bool, error) {
	begin := ledger.Now()
	g, ok := c.grant(id, reserve)
	if !ok {
		return false, nil
	}
	if err := c.ledger.Append(ledger.Entry{
		Kind: ledger.Start, At: begin, PID: os.Getpid(), Key: c.key, Cluster: "vm", Pod: c.name,
		PodUID: string(g.Owner), Token: int64(g.FencingToken),
	}); err != nil {
		return false, err
	}
	<-time.After(unit) // where a pause hits, so that what is written next may come too late
	if err := c.witness.write(c.key, g); err != nil {
		return false, err
	}
	_, stands := c.grant(id, 0)
	return stands, c.ledger.Append(ledger.Entry{Kind: ledger.Stop, PID: os.Getpid()})
}

// grant returns the newest grant if it is good for a while yet.
func (c *contender) grant(id keeper.ID, while time.Duration) (lock.Grant, bool) {
	state, ok := c.keeper.State(id)
	g := state.Acquired.Grant
	return g, ok && state.Phase == keeper.PhaseHeld && g.Valid(time.Now().Add(while))
}

// witness is the connection to the resource.
type witness struct {
	conn    net.Conn
	answers *bufio.Reader
}

func dialWitness(addr string) (*witness, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the witness: %w", err)
	}
	return &witness{conn: conn, answers: bufio.NewReader(conn)}, nil
}

// write is one write to the resource under this grant. That it was refused changes nothing: the grant
// alone has to say when to stop, and a refusal would hide one that does not.
func (w *witness) write(key string, g lock.Grant) error {
	if _, err := fmt.Fprintf(w.conn, "%s %d %s\n", key, g.FencingToken, g.Owner); err != nil {
		return fmt.Errorf("write to the witness: %w", err)
	}
	if _, err := w.answers.ReadString('\n'); err != nil {
		return fmt.Errorf("read the witness's answer: %w", err)
	}
	return nil
}
