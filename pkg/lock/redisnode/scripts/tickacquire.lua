-- KEYS: those of a tick, meta. ARGV: tag, minute, owner, ttl, floor, ordered, layout
-- Answers: granted | again (token), held | age | superseded (view), layout (version).
master_only()
local owner, ttl, floor, ordered = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'

local layout = redis.call('HGET', KEYS[6], 'layout')
if layout and (tonumber(layout) or math.huge) > tonumber(ARGV[7]) then return {ARGV[1], 'layout', layout} end

local t = now()
local seen, minutes = look_tick(), started(redis.call)
local highest = tick_highest(t, redis.call)
local plain = fencing(redis.call('GET', KEYS[5]), t + AHEAD) or 0

if seen.owner == owner then
  if RANK[seen.stage] > 1 then
    redis.call('PEXPIRE', LOCK, RETAIN)
  elseif seen.left < ttl then
    redis.call('PEXPIRE', LOCK, int(ttl))
  end
  return {ARGV[1], 'again', seen.value}
end

if t - MINUTE * 60000 > DAY then return tick_reply('age', seen, minutes, t) end
if seen.state ~= 'Held' or seen.stage == 'claimed' then
  local was_started = #without(minutes) < #minutes
  if was_started or (ordered and newest(minutes, t) > MINUTE) then return tick_reply('superseded', seen, minutes, t) end
end
if seen.state ~= 'Free' then return tick_reply('held', seen, minutes, t) end

local fence = math.max(highest + 1, plain + 1, floor, t)
local token = owner .. '#' .. int(fence) .. '#claimed'
if not layout then redis.call('HSET', KEYS[6], 'layout', ARGV[7]) end
redis.call('SET', FENCE, int(fence), 'PX', REMEMBER)
redis.call('SET', LOCK, token, 'PX', int(ttl))
return {ARGV[1], 'granted', token}
