package redisnode

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// RedirectLog sends what the Redis client has to say about its connections to write, which must be quick and may be called concurrently.
// It counts for the whole process, so it is for a program's main, once, before the first New. By default the client writes to stderr.
func RedirectLog(write func(message string)) { redis.SetLogger(redirected(write)) }

type redirected func(string)

func (r redirected) Printf(_ context.Context, format string, args ...any) {
	r(fmt.Sprintf(format, args...))
}
