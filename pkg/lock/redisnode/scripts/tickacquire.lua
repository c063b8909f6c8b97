-- KEYS: those of a tick, meta, plain lock. ARGV: tag, minute, owner, ttl, floor, ordered, layout, delay, retry
-- Answers: granted | again (token, before, start after), held | age | superseded (view), layout (version).
master_only()
local owner, ttl, floor, ordered = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local delay, retry = tonumber(ARGV[8]), ARGV[9] == '1'

local layout = redis.call('HGET', KEYS[8], 'layout')
if layout and (tonumber(layout) or math.huge) > tonumber(ARGV[7]) then return {ARGV[1], 'layout', layout} end

local t = now()
local seen, minutes = look_tick(), started(redis.call)
local highest = tick_highest(t, redis.call)
local plain = fencing(redis.call('GET', KEYS[5]), t + AHEAD) or 0
local settling = math.max(redis.call('PTTL', SETTLE), 0)

local function start_after() return delay > 0 and int(settling) or '0' end

if seen.owner == owner then
  if RANK[seen.stage] > 1 then
    redis.call('PEXPIRE', LOCK, RETAIN)
  elseif seen.left < ttl then
    redis.call('PEXPIRE', LOCK, int(ttl))
  end
  return {ARGV[1], 'again', seen.value, settling > 0 and 'Forgotten' or 'None', start_after()}
end

if t - MINUTE * 60000 > DAY then return tick_reply('age', seen, minutes, t) end
-- Whoever started it did so under the plain lock. Where nobody has that, nobody is at it, unless that lock was lost with other data.
local forsaken = retry and seen.state == 'Held' and seen.stage == 'started' and settling == 0 and redis.call('TYPE', KEYS[9]).ok == 'none'
if seen.state ~= 'Held' or seen.stage == 'claimed' or forsaken then
  -- A minute stays in the book when its tick is taken, so that it counts towards older ones.
  local was_started = #without(minutes) < #minutes and not forsaken and not redis.call('GET', TAKEN)
  if was_started or (ordered and newest(minutes, t) > MINUTE) then return tick_reply('superseded', seen, minutes, t) end
end
if seen.state ~= 'Free' and not forsaken then return tick_reply('held', seen, minutes, t) end

-- Where data was lost, a tick that was started may be missing with it. Whoever runs one gets the time to make its record again.
local forgotten = math.max(highest, plain) < floor - 1
if forgotten and settling < ttl + delay then
  settling = ttl + delay
  redis.call('SET', SETTLE, '1', 'PX', int(settling))
end
local fence = math.max(highest + 1, plain + 1, floor, t)
local token = owner .. '#' .. int(fence) .. '#claimed'
if not layout then redis.call('HSET', KEYS[8], 'layout', ARGV[7]) end
redis.call('SET', FENCE, int(fence), 'PX', REMEMBER)
if forsaken then redis.call('SET', TAKEN, int(seen.fence), 'PX', RETAIN) end
redis.call('SET', LOCK, token, 'PX', int(ttl))
return {ARGV[1], 'granted', token, (forgotten or settling > 0) and 'Forgotten' or 'None', start_after()}
