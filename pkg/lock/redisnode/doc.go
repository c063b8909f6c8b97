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
//	conch:{K}:waiting    string   home of the contender of another home that was refused last; 10 s
//	conch:{K}:released   channel  a hint that the key is free
//
// A tick is one scheduled run of K, named by its minute since 1970 in UTC, and a lock of its own. Its times are those of lock.MaxTickAge
// and lock.TickRetention.
//
//	conch:{K}:tick:<minute>           string   owner#fencing token#stage, with a ttl while claimed, then for 48 h
//	conch:{K}:tick:<minute>:back      string   owner#fencing token that it was given back under; 48 h
//	conch:{K}:tick:<minute>:taken     string   fencing token of the start that it was taken over from; 48 h
//	conch:{K}:tick:fence              string   highest fencing token of any tick of K; 30 days
//	conch:{K}:tick:newest             string   minutes that were started, newest first, at most 32; 48 h
//	conch:{K}:tick:settle             string   while it is there, data was lost just now: no claim is started, and no start forsaken
//	conch:{K}:tick:<minute>:released  channel  a hint that the tick is free, or was started or ended
//	conch:{K}:of:<series>:tick:…      the same of a series, but for fence and settle, which all ticks of K share
//
// A new fencing token of K or of a tick of K is above all that both have had, so that one resource may see them mixed.
//
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
