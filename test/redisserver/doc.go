// Package redisserver starts real redis-server processes for tests, each on a loopback port of its own and without persistence. A server
// can be killed, restarted empty on the same port, and paused. It ends with the test, and with the test binary however that ends.
package redisserver
