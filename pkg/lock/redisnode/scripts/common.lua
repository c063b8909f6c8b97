-- Stands before every script of a lock. KEYS: lock, fence, last. ARGV: tag, ...
-- Nothing is written before everything that may fail was read, and the lock itself is written last.
local LOCK, FENCE, LAST = KEYS[1], KEYS[2], KEYS[3]
local DAY = 24 * 3600 * 1000
local REMEMBER = string.format('%.0f', 30 * DAY) -- after the last use
local AHEAD = 365 * DAY -- a stored fencing token further ahead of the clock than this is ignored
local AWAITED = '10000' -- how long a contender that was refused counts as waiting
local MAX_DIGITS = 16 -- 2^53 has that many; beyond it Lua's numbers lose units

local function int(n) return string.format('%.0f', n) end

local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local function begins(s, prefix) return prefix ~= '' and string.sub(s, 1, #prefix) == prefix end

-- master_only stands first where something is decided. A replica may be behind, so it must neither confirm nor end a tenure: the key that
-- is deleted never exists, so a master changes nothing, and a replica answers READONLY.
local function master_only() redis.call('DEL', LAST .. ':none') end

-- fencing reads a stored number; one that cannot be meant comes back as nil.
local function fencing(s, limit)
  if not s or #s > MAX_DIGITS or not string.match(s, '^%d+$') then return nil end
  local n = tonumber(s)
  if n > limit then return nil end
  return n
end

-- look says what stands under the lock key. Owner is set for a value in our form, with or without expiry.
local function look()
  local seen = {kind = redis.call('TYPE', LOCK).ok, state = 'Free', value = '', left = 0}
  if seen.kind == 'none' then return seen end
  seen.state, seen.left = 'Foreign', redis.call('PTTL', LOCK)
  if seen.kind ~= 'string' then return seen end
  local value = redis.call('GETRANGE', LOCK, 0, 1023)
  local released = begins(value, 'released/')
  local owner, digits = string.match(released and string.sub(value, 10) or value, '^([^#%c]+)#(%d+)$')
  if not owner or #digits > MAX_DIGITS or #value > 1000 then return seen end
  seen.value = value
  if not released then seen.owner, seen.fence = owner, tonumber(digits) end
  if seen.left >= 0 then seen.state = released and 'Released' or 'Held' end
  return seen
end

-- past is the newest acquisition. How is redis.call, or redis.pcall where a damaged helper must not stand in the way.
local function past(how)
  local f = how('HMGET', LAST, 'owner', 'fence', 'validUntil', 'ended', 'foreign', 'notBefore', 'settles', 'before', 'prev', 'continued')
  if f.err then f = {} end
  return {
    owner = f[1] or '', fence = f[2] or '', validUntil = tonumber(f[3] or '') or 0, ended = f[4] or '', foreign = f[5] == '1',
    notBefore = tonumber(f[6] or '') or 0, settles = f[7] or '', before = f[8] or 'None', prev = f[9] or '', continued = f[10] == '1',
    token = (f[1] or '') .. '#' .. (f[2] or ''),
  }
end

-- remembered is the highest fencing token that counts, and the text of one that does not.
local function remembered(last, limit, how)
  local stored = how('GET', FENCE)
  if type(stored) == 'table' then stored = false end
  local a, b = fencing(stored, limit), fencing(last.fence, limit)
  local ignored = (stored and not a and stored) or (last.fence ~= '' and not b and last.fence) or ''
  return math.max(a or 0, b or 0), string.sub(ignored, 1, 64)
end

local function ending(seen, last)
  if last.foreign then return 'Foreign' end
  if last.owner == '' or seen.value == last.token then return 'None' end
  if last.ended == 'clean' then return 'Released' end
  return 'Unreleased'
end

-- reply is an answer with what was seen.
local function reply(status, seen, last, highest)
  return {ARGV[1], status, seen.state, seen.kind, seen.value, int(seen.left), int(highest), last.owner, ending(seen, last)}
end

-- refuse is a reply that ends somebody's hopes. A foreign holder is noted down once, for whoever comes after it.
local function refuse(status, seen, last)
  if seen.state == 'Foreign' and not last.foreign then
    redis.pcall('HSET', LAST, 'foreign', '1')
    redis.pcall('PEXPIRE', LAST, REMEMBER)
    last.foreign = true
  end
  return reply(status, seen, last, (remembered(last, now() + AHEAD, redis.pcall)))
end

-- remember keeps the helpers, and mends what was lost of them while the lock is held.
local function remember(seen, validUntil)
  if redis.pcall('PEXPIRE', FENCE, REMEMBER) == 0 then redis.pcall('SET', FENCE, int(seen.fence), 'PX', REMEMBER) end
  local missed = redis.pcall('HSET', LAST, 'validUntil', int(validUntil), 'foreign', '')
  if type(missed) == 'number' and missed > 0 then
    redis.pcall('HSET', LAST, 'owner', seen.owner, 'fence', int(seen.fence), 'ended', '')
  end
  redis.pcall('PEXPIRE', LAST, REMEMBER)
end

-- extend gives the lock a ttl; the remaining time shrinks only if that was asked for.
local function extend(seen, ttl, shorten)
  if shorten or seen.left < ttl then
    redis.call('PEXPIRE', LOCK, int(ttl))
    seen.left = ttl
  end
  remember(seen, now() + seen.left)
end
