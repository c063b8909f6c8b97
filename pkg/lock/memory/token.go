package memory

import (
	"strconv"
	"strings"

	"github.com/conch-dev/conch/pkg/lock"
)

// newToken is owner#number, and for a tick owner#number#stage.
func newToken(o lock.Owner, f lock.FencingToken, s lock.Stage) lock.Token {
	if s != "" {
		return plainToken(o, f) + lock.Token("#"+s)
	}
	return plainToken(o, f)
}

func plainToken(o lock.Owner, f lock.FencingToken) lock.Token {
	return lock.Token(string(o) + "#" + strconv.FormatInt(int64(f), 10))
}

// parseToken takes a token apart, if it has our form: no control characters, and a plain number that every store can count to.
func parseToken(t lock.Token) (lock.Owner, lock.FencingToken, bool) {
	owner, digits, ok := strings.Cut(string(t), "#")
	n, err := strconv.ParseUint(digits, 10, 64)
	plain := !strings.ContainsFunc(owner, func(r rune) bool { return r < ' ' || r == 0x7f })
	return lock.Owner(owner), lock.FencingToken(n), ok && err == nil && owner != "" && plain && n <= maxFence
}

// parseTickToken takes a tick's token apart.
func parseTickToken(t lock.Token) (lock.Owner, lock.FencingToken, lock.Stage, bool) {
	i := strings.LastIndexByte(string(t), '#')
	if i < 0 {
		return "", 0, "", false
	}
	stage := lock.Stage(t[i+1:])
	owner, number, ok := parseToken(t[:i])
	return owner, number, stage, ok && (stage == lock.StageClaimed || stage.Begun())
}
