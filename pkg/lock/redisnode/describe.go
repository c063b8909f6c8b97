package redisnode

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// announceFor is how long an announcement stands after its cluster was last heard of.
const announceFor = 30 * 24 * time.Hour

// Describe asks the server with INFO. Where the user may not, the reason is NoPerm.
func (b *Backend) Describe(ctx context.Context) (lock.Facts, error) {
	info := map[string]string{}
	for _, answer := range b.main.do(ctx, []op{{args: []any{"INFO", "server"}}, {args: []any{"INFO", "replication"}}}) {
		if answer.err != nil {
			return lock.Facts{}, unknown("describe", answer.err)
		}
		for line := range strings.Lines(answer.text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
	}
	uptime, _ := strconv.ParseInt(info["uptime_in_seconds"], 10, 64)
	return lock.Facts{
		Server:  product(info),
		Role:    info["role"],
		RunID:   info["run_id"],
		Started: time.Duration(uptime) * time.Second,
	}, nil
}

// product names the server. Valkey also reports the version of Redis it is compatible with.
func product(info map[string]string) string {
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return strings.TrimSpace("Redis " + info["redis_version"])
}

// Announce writes down who decides for a cluster. See lock.Announcer.
func (b *Backend) Announce(ctx context.Context, id, nonce string, takeover bool) (string, error) {
	answer := b.main.do(ctx, []op{{
		script:  announceScript,
		keys:    []string{b.layout.cluster(id)},
		subject: nonce,
		args:    []any{nonce, flag(takeover), announceFor.Milliseconds()},
	}})[0]
	if answer.err != nil {
		return "", unknown("announce "+id, answer.err)
	}
	return answer.fields[1], nil
}
