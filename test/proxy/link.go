package proxy

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxPending bounds the requests of one connection that wait for their replies.
const maxPending = 1 << 16

// link is one connection of a client and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	pending        chan request
	done           chan struct{}
	once           sync.Once
}

// request is one that was forwarded, and what shall become of its reply.
type request struct {
	rule   Rule
	sent   time.Time
	healed <-chan struct{}
	stream bool // replies no longer belong to requests from here on
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, pending: make(chan request, maxPending), done: make(chan struct{})}
}

func (k *link) end() {
	k.once.Do(func() {
		close(k.done)
		_ = k.client.Close()
		_ = k.server.Close()
	})
}

func (k *link) run() {
	var both sync.WaitGroup
	in := bufio.NewReader(k.client)
	if first, err := in.Peek(1); err == nil && first[0] == '*' {
		both.Go(func() { defer k.end(); k.requests(in) })
		both.Go(func() { defer k.end(); k.replies(bufio.NewReader(k.server)) })
	} else {
		both.Go(func() { defer k.end(); k.pass(k.server, in) })
		both.Go(func() { defer k.end(); k.pass(k.client, k.server) })
	}
	both.Wait()
	k.proxy.forget(k)
}

// pass copies what is not read, unless the link is a black hole.
func (k *link) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if k.proxy.is(BlackHole) {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// requests forwards what the client sends.
func (k *link) requests(in *bufio.Reader) {
	for {
		raw, command, err := readCommand(in)
		if err != nil {
			return
		}
		r := request{rule: k.proxy.match(command), sent: time.Now(), healed: k.proxy.nextHeal(), stream: streams(command[0])}
		if r.rule.Mode == BlackHole {
			if r.rule.whole() {
				continue
			}
			_, _ = io.Copy(io.Discard, in) // dead from here on
			return
		}
		k.pending <- r
		if _, err := k.server.Write(raw); err != nil {
			return
		}
		if r.stream {
			k.pass(k.server, in)
			return
		}
	}
}

// replies sends back what the server answers, each as the rule of its request says.
func (k *link) replies(in *bufio.Reader) {
	var before []byte
	for {
		raw, err := readFrame(in)
		if err != nil {
			return
		}
		var r request
		select {
		case r = <-k.pending:
		case <-k.done:
			return
		}
		if !k.reply(r, raw, before) {
			return
		}
		before = raw
		if r.stream {
			k.pass(k.client, in)
			return
		}
	}
}

// reply reports whether the link goes on.
func (k *link) reply(r request, raw, before []byte) bool {
	switch r.rule.Mode {
	case Cut:
		return false
	case SwallowReply:
		return true
	case HoldReply:
		if !k.wait(r.healed, nil) {
			return false
		}
	case Delay:
		timer := time.NewTimer(time.Until(r.sent.Add(r.rule.Delay)))
		defer timer.Stop()
		if !k.wait(nil, timer.C) {
			return false
		}
	case StaleReply:
		if before != nil {
			raw = before
		}
	}
	if k.proxy.is(BlackHole) {
		return true
	}
	_, err := k.client.Write(raw)
	return err == nil
}

func (k *link) wait(healed <-chan struct{}, due <-chan time.Time) bool {
	select {
	case <-healed:
	case <-due:
	case <-k.done:
		return false
	}
	return true
}

// streams reports a command after which the server speaks without being asked.
func streams(name string) bool {
	return slices.Contains([]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC"}, strings.ToUpper(name))
}
