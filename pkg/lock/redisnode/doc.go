// Package redisnode keeps locks in one Redis (6.2 or later, also Valkey).
//
// # Layout, version 1
//
// K is the escaped name of a key, and the prefix is configurable. A raw key stands exactly as it is written; "raw:" keeps its helpers
// apart from those of another key with the same text. All that belongs to one lock has one hash tag.
//
//	conch:{K}            string   owner#fencing token, with a ttl
//	conch:{K}:fence      string   highest fencing token; 30 days after the last use
//	conch:{K}:last       hash     newest acquisition: owner, fence, validUntil, ended, notBefore; as long as the fence
//	conch:{K}:released   channel  a hint that the key is free
//	conch:{raw}:raw:…    the same helpers of a raw key
//	conch:meta           hash     layout: the version. Where it is newer than this one, nothing is acquired
//	conch:cluster:<id>   string   who decides for a cluster
//
// # Rights
//
// The user needs the key and channel pattern of the prefix (and the raw keys), and the commands del, eval, evalsha, get, getrange, hget,
// hello, hmget, hset, pexpire, ping, psubscribe, pttl, publish, punsubscribe, set, time, type, client|setname; select where the database
// is not 0, and info for Describe.
//
// # What the server must not do
//
// Evict keys (maxmemory-policy noeviction), or answer from a replica: what decides anything is written, so a replica refuses it.
package redisnode
