package redisnode

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/conch-dev/conch/pkg/lock"
)

// Inspect reports what stands under the keys, each by one script. See lock.Backend.
func (b *Backend) Inspect(ctx context.Context, keys []lock.Key) ([]lock.View, error) {
	ops := make([]op, len(keys))
	for i, k := range keys {
		if err := invalid(b.checkKey(k)); err != nil {
			return nil, err
		}
		ops[i] = op{script: inspectScript, keys: b.layout.keys(k), subject: b.layout.lock(k)}
		if k.Tick != 0 {
			ops[i] = b.tickOp(tickInspectScript, k, b.layout.lock(k))
		}
	}
	views := make([]lock.View, 0, len(keys))
	for len(views) < len(keys) {
		batch := ops[len(views):min(len(views)+renewBatch, len(ops))]
		for _, answer := range b.main.do(ctx, batch) {
			k := keys[len(views)]
			if answer.err != nil {
				return nil, unknown("inspect "+k.String(), answer.err)
			}
			views = append(views, viewOf(k, answer.fields[1:]))
		}
	}
	return views, nil
}

// viewOf reads: state, type, value in our form, remaining time, highest fencing token, last owner, how that ended; of a tick also its
// stage and the newest one that was started.
func viewOf(k lock.Key, fields []string) lock.View {
	v := anyView(k, fields)
	if k.Tick != 0 {
		return asTick(v, fields)
	}
	return v
}

func anyView(k lock.Key, fields []string) lock.View {
	fields = append(fields, make([]string, max(0, 7-len(fields)))...)
	v := lock.View{
		Key: k, State: lock.ViewState(fields[0]), Highest: fencingToken(fields[4]),
		Last: lock.Owner(fields[5]), LastEnded: lock.Ending(fields[6]),
	}
	if v.State == lock.ViewFree {
		return v
	}
	v.Type = fields[1]
	v.Remaining = duration(fields[3])
	if v.Remaining < 0 {
		v.Remaining, v.NoExpiry = 0, true
	}
	if v.State != lock.ViewForeign {
		token := strings.TrimPrefix(fields[2], "released/")
		v.Token = lock.Token(token)
		v.Owner, v.FencingToken, _ = parseToken(token)
	}
	return v
}

func newToken(o lock.Owner, f lock.FencingToken) lock.Token {
	return lock.Token(string(o) + "#" + strconv.FormatInt(int64(f), 10))
}

func parseToken(s string) (lock.Owner, lock.FencingToken, bool) {
	owner, digits, ok := strings.Cut(s, "#")
	n, err := strconv.ParseUint(digits, 10, 63)
	return lock.Owner(owner), lock.FencingToken(n), ok && err == nil && owner != ""
}

func fencingToken(s string) lock.FencingToken {
	n, _ := strconv.ParseInt(s, 10, 64)
	return lock.FencingToken(n)
}

func duration(ms string) time.Duration {
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.Duration(n) * time.Millisecond
}
