package redisnode

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// op is one question to the server: a script, or a plain command where script is nil.
type op struct {
	script  *script
	keys    []string
	subject string // what the answer must name: the token, the owner, or the key
	args    []any
}

// reply is the answer. Fields are those of a script after the tag; text is that of a plain command.
type reply struct {
	sent   time.Time // read before the first byte left
	fields []string
	text   string
	err    error
}

var (
	errClosed = errors.New("the backend is closed")
	errShift  = errors.New("the answer belongs to another question")
)

// executor sends operations in pipelines over one pool. It bounds each call by itself, so that a caller that gives up costs no connection.
type executor struct {
	client  redis.UniversalClient
	conns   *connections
	timeout time.Duration
	tags    atomic.Uint64
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

func newExecutor(o Options, name string, poolSize int) *executor {
	conns := newConnections(o.TLS)
	return &executor{
		client:  redis.NewUniversalClient(o.universal(name, poolSize, conns.dial)),
		conns:   conns,
		timeout: o.Timeout,
	}
}

// do answers every op, in order. It returns early when ctx ends; the request may then still reach the server.
func (e *executor) do(ctx context.Context, ops []op) []reply {
	if err := ctx.Err(); err != nil {
		return failed(len(ops), err)
	}
	if !e.begin() {
		return failed(len(ops), errClosed)
	}
	done := make(chan []reply, 1)
	go func() {
		defer e.running.Done()
		done <- e.run(context.WithoutCancel(ctx), ops)
	}()
	select {
	case replies := <-done:
		return replies
	case <-ctx.Done():
		return failed(len(ops), context.Cause(ctx))
	}
}

func failed(n int, err error) []reply {
	replies := make([]reply, n)
	for i := range replies {
		replies[i].err = err
	}
	return replies
}

// call is an op on its way.
type call struct {
	op
	tag string
	cmd *redis.Cmd
}

func (e *executor) run(ctx context.Context, ops []op) []reply {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	calls := make([]*call, len(ops))
	for i, o := range ops {
		calls[i] = &call{op: o, tag: strconv.FormatUint(e.tags.Add(1), 10) + " " + o.subject}
	}
	sent := time.Now()
	e.send(ctx, calls, (*call).brief)
	if missing := unknownScripts(calls); len(missing) > 0 {
		e.send(ctx, missing, (*call).full)
	}
	replies := make([]reply, len(calls))
	for i, c := range calls {
		replies[i] = c.read()
		replies[i].sent = sent
		if errors.Is(replies[i].err, errShift) {
			e.conns.cut() // one of them is out of step, and it is not known which
		}
	}
	return replies
}

// send puts the calls into one pipeline. What became of each stands in its command, except where a server refuses the connection itself,
// for want of a password for example: then the commands have neither value nor error, which must not pass for an answer.
func (e *executor) send(ctx context.Context, calls []*call, words func(*call) []any) {
	pipe := e.client.Pipeline()
	for _, c := range calls {
		c.cmd = pipe.Do(ctx, words(c)...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		for _, c := range calls {
			if c.cmd.Err() == nil && c.cmd.Val() == nil {
				c.cmd.SetErr(err)
			}
		}
	}
}

// unknownScripts are the calls whose script the server has not seen, or has forgotten.
func unknownScripts(calls []*call) []*call {
	var missing []*call
	for _, c := range calls {
		if c.script != nil && redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") {
			missing = append(missing, c)
		}
	}
	return missing
}

func (c *call) brief() []any {
	if c.script == nil {
		return c.args
	}
	return c.words("EVALSHA", c.script.sha)
}

func (c *call) full() []any { return c.words("EVAL", c.script.text) }

func (c *call) words(command, what string) []any {
	words := make([]any, 0, 4+len(c.keys)+len(c.args))
	words = append(words, command, what, len(c.keys))
	for _, k := range c.keys {
		words = append(words, k)
	}
	return append(append(words, c.tag), c.args...)
}

// read takes the answer apart, and refuses one that does not name the question.
func (c *call) read() reply {
	value, err := c.cmd.Result()
	if err != nil {
		return reply{err: err}
	}
	if c.script == nil {
		text, _ := value.(string)
		return reply{text: text}
	}
	list, _ := value.([]any)
	fields := make([]string, len(list))
	for i, v := range list {
		fields[i], _ = v.(string)
	}
	if len(fields) < 2 || fields[0] != c.tag {
		return reply{err: fmt.Errorf("%w (asked %q)", errShift, c.tag)}
	}
	return reply{fields: fields[1:]}
}

// begin registers a call, unless the executor was closed.
func (e *executor) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.running.Add(1)
	return true
}

func (e *executor) close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	err := e.client.Close()
	e.conns.cut() // those that are in use
	e.running.Wait()
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}
