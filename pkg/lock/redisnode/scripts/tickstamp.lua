-- KEYS: those of a tick. ARGV: tag, minute, owner, fence, from, to, ttl, shorten, ordered, channel
-- Answers: stamped (token), or lost | superseded (view). A grant that says claimed never makes a record; one that says started does, and
-- takes over a claim. No stage ever goes back.
master_only()
local owner, fence, from, to = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ttl, shorten, ordered = tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9] == '1'

local t = now()
local seen, minutes = look_tick(), started(redis.pcall)
local stage
if seen.owner == owner and seen.fence == tonumber(fence) then
  stage = seen.stage
  if ordered and from == 'claimed' and stage == 'claimed' and to == 'started' and newest(minutes, t) > MINUTE then
    return tick_reply('superseded', seen, minutes, t)
  end
elseif RANK[from] == 1 or redis.pcall('GET', BACK) == owner .. '#' .. fence or taken(fence) then
  return tick_reply('lost', seen, minutes, t)
elseif seen.state == 'Free' or (seen.state == 'Held' and seen.stage == 'claimed') then
  stage = from
  -- Data was lost, maybe the plain lock with it. Whoever runs the tick gets the time to take that again before the tick counts as forsaken.
  if redis.call('PTTL', SETTLE) < ttl then redis.pcall('SET', SETTLE, '1', 'PX', int(ttl)) end
else
  return tick_reply('lost', seen, minutes, t)
end
if RANK[stage] < RANK[from] then stage = from end -- the store is back at an earlier state
local onwards = RANK[stage] < RANK[to]
if onwards then stage = to end

local token = owner .. '#' .. fence .. '#' .. stage
if stage == 'claimed' then
  number(tonumber(fence), t)
  if shorten or seen.left < ttl then redis.call('PEXPIRE', LOCK, int(ttl)) end
else
  enrol(minutes)
  number(tonumber(fence), t)
  redis.call('SET', LOCK, token, 'PX', RETAIN)
end
if onwards then redis.pcall('PUBLISH', ARGV[10], '') end
return {ARGV[1], 'stamped', token}
