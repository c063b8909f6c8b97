package redisnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/conch-dev/conch/pkg/lock"
)

// maxMessage bounds what is quoted of a server's answer.
const maxMessage = 200

// answers are what a server says when it refuses. The code is searched for anywhere, because an error inside a script is wrapped, in a way
// that depends on the release.
var answers = []struct {
	code   string
	reason lock.Reason
	advice string
}{
	{"NOAUTH", lock.ReasonNoAuth, "the server wants a password: configure user and password"},
	{"WRONGPASS", lock.ReasonWrongPass, "the server refused user or password: correct them"},
	{"invalid password", lock.ReasonWrongPass, "the server refused user or password: correct them"},
	{"without any password configured", lock.ReasonWrongPass, "the server knows no password: configure none, or set one there"},
	{"NOPERM", lock.ReasonNoPerm, "the user lacks a right: grant it"},
	{"ACL failure", lock.ReasonNoPerm, "the user lacks a right: grant it"},
	{"can't run this command", lock.ReasonNoPerm, "the user lacks a right: grant it"},
	{"can't access at least one of the keys", lock.ReasonNoPerm, "the user lacks the right to a key: grant the prefix and the raw keys"},
	{"READONLY", lock.ReasonReadOnly, "a replica answered: give the address of the master"},
	{"WRONGTYPE", lock.ReasonWrongType, "a helper key of the lock has another type: delete what took its place"},
	{"MOVED", lock.ReasonMoved, "the server is part of a Redis Cluster, which mode Standalone cannot use"},
	{"CROSSSLOT", lock.ReasonMoved, "the server is part of a Redis Cluster, which mode Standalone cannot use"},
	{"CLUSTERDOWN", lock.ReasonMoved, "the server is part of a Redis Cluster, which mode Standalone cannot use"},
	{"LOADING", lock.ReasonLoading, "the server still reads its data: wait"},
	{"MASTERDOWN", lock.ReasonLoading, "the server is a replica without its master: wait, or give the address of the master"},
	{"NOREPLICAS", lock.ReasonOther, "the server has too few replicas to accept writes (min-replicas-to-write): mend replication"},
	{"OOM", lock.ReasonOther, "the server is out of memory: raise maxmemory, or delete something"},
	{"MISCONF", lock.ReasonOther, "the server cannot save its data and refuses writes: mend its disk"},
	{"max number of clients", lock.ReasonOther, "the server has too many clients: raise maxclients"},
}

// unknown makes an ErrUnknown of what went wrong: one line that says what to mend, and never a password.
func unknown(operation string, err error) error {
	reason, advice := classify(err)
	return &lock.UnknownError{Op: operation, Reason: reason, Err: explain(advice, err)}
}

func classify(err error) (lock.Reason, string) {
	var answer redis.Error
	var credentials *credentialsError
	var handshake *handshakeError
	switch {
	case errors.As(err, &credentials):
		return lock.ReasonNoAuth, "user and password could not be read"
	case errors.As(err, &answer):
		return classifyAnswer(answer.Error())
	case errors.Is(err, errShift):
		return lock.ReasonOther, "the connections were cut because an answer came out of order"
	case errors.Is(err, context.Canceled):
		return lock.ReasonNoReply, "the caller gave up before an answer came"
	case errors.As(err, &handshake) && isTimeout(err):
		return lock.ReasonTimeout, "no answer to the TLS handshake in time: check that the server speaks TLS there, network and load"
	case errors.As(err, &handshake) || strings.Contains(err.Error(), "tls: "):
		return lock.ReasonTLS, "check that the server speaks TLS there, the names in its certificate and the authorities"
	case strings.Contains(err.Error(), "can't parse"):
		return lock.ReasonTLS, "the server does not speak plain Redis there: configure TLS, or correct the address"
	case errors.Is(err, redis.ErrPoolTimeout):
		return lock.ReasonTimeout, "no connection became free in time"
	case isDial(err):
		return lock.ReasonUnreachable, "no connection: check address, network and that the server runs"
	case isTimeout(err):
		return lock.ReasonTimeout, "no answer in time: check network and load of the server"
	case isBroken(err):
		return lock.ReasonUnreachable, "the connection broke: check network, that the server runs, and whether it wants TLS"
	}
	return lock.ReasonOther, "unexpected"
}

func classifyAnswer(text string) (lock.Reason, string) {
	for _, a := range answers {
		if strings.Contains(text, a.code) {
			return a.reason, a.advice
		}
	}
	return lock.ReasonOther, "the server refused"
}

// explain joins advice and cause. A server's answer is quoted, not wrapped, and without the arguments that some answers repeat: they may
// be those of AUTH.
func explain(advice string, err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return fmt.Errorf("%s: %w", advice, err)
	}
	text := answer.Error()
	for _, tail := range []string{", with args beginning", " script: ", "\r", "\n"} {
		text, _, _ = strings.Cut(text, tail)
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "")
	}
	return fmt.Errorf("%s: server says %q", advice, text)
}

func isDial(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return (errors.As(err, &op) && op.Op == "dial") || errors.As(err, &dns)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &n) && n.Timeout())
}

func isBroken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) || errors.As(err, &op)
}

// isAnswer reports an error that the server itself gave.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}
