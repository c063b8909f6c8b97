-- KEYS: lock, fence, last, meta, waiting, tick:fence. ARGV: tag, owner, ttl, floor, delay, home, since, layout
-- Answers: granted | again (token, before, start after, ignored fencing token), held | lost (view), layout (version).
master_only()
local owner, ttl, floor = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local delay, home, since = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])

local layout = redis.call('HGET', KEYS[4], 'layout')
if layout and (tonumber(layout) or math.huge) > tonumber(ARGV[8]) then return {ARGV[1], 'layout', layout} end

local t = now()
local seen, last = look(), past(redis.call)
local highest, ignored = remembered(last, t + AHEAD, redis.call)

-- The caller confirms the end of its own home's tenures by itself.
local function home_confirms(whom) return whom ~= '' and begins(whom, home) end

local function start_after(notBefore, settles)
  if delay == 0 or home_confirms(settles) then return '0' end
  return int(math.max(notBefore - t, 0))
end

-- Times of the past are bounded, so that a clock that was ahead once does not block the lock for long.
local notBefore, settles = math.min(last.notBefore, t + 2 * DAY), last.settles

if seen.owner == owner then
  extend(seen, ttl, false)
  return {ARGV[1], 'again', seen.value, last.before, start_after(notBefore, settles), ''}
end
if since > 0 and (seen.state ~= 'Free' or highest > since) then return refuse('lost', seen, last) end
if seen.state ~= 'Free' then
  -- A holder of another home is told that somebody waits, when it renews.
  if seen.state == 'Held' and home ~= '' and not begins(seen.owner, home) then redis.pcall('SET', KEYS[5], home, 'PX', AWAITED) end
  return refuse('held', seen, last)
end

-- One order for the key and its ticks, so that what is guarded by fencing tokens may see both.
local ticks = redis.pcall('GET', KEYS[6])
ticks = type(ticks) == 'string' and fencing(ticks, t + AHEAD) or 0

-- How the tenure before ended. Without either helper there was none, unless the caller knows better.
local before = ending(seen, last)
if math.max(highest, ticks) < floor - 1 or (before == 'None' and highest > 0) then before = 'Forgotten' end

-- When the new holder may start. What an earlier acquire found holds until it has passed, whoever acquired and gave back since.
if notBefore <= t then notBefore, settles = 0, '' end
if since == 0 and delay > 0 and before ~= 'None' and before ~= 'Released' then
  local from = t
  if last.owner ~= '' and last.ended ~= 'clean' then from = math.max(t, math.min(last.validUntil, t + DAY)) end
  if before == 'Forgotten' then from = math.max(from, t + ttl) end
  local whom = before == 'Unreleased' and last.owner or ''
  if notBefore > 0 and settles ~= whom and not (home_confirms(settles) and home_confirms(whom)) then whom = '' end
  notBefore, settles = math.max(notBefore, from + delay), whom
end

local fence = math.max(highest + 1, ticks + 1, since + 1, floor, t)
local token = owner .. '#' .. int(fence)
if not layout then redis.call('HSET', KEYS[4], 'layout', ARGV[8]) end
redis.call('HSET', LAST, 'owner', owner, 'fence', int(fence), 'validUntil', int(t + ttl), 'ended', '', 'foreign', '',
  'notBefore', int(notBefore), 'settles', settles, 'before', before, 'prev', last.ended ~= '' and last.token or '',
  'continued', since > 0 and '1' or '')
redis.call('PEXPIRE', LAST, REMEMBER)
redis.call('SET', FENCE, int(fence), 'PX', REMEMBER)
redis.call('SET', LOCK, token, 'PX', int(ttl))
return {ARGV[1], 'granted', token, before, start_after(notBefore, settles), ignored}
