-- Stands after common.lua before every script of a tick. KEYS: tick, tick:fence, tick:newest, back, fence, taken,
-- tick:settle. ARGV: tag, minute, ...
-- A tick is a record owner#number#stage; what all ticks of a key share are the highest number and the minutes that were started.
local NEWEST, BACK, TAKEN, SETTLE = KEYS[3], KEYS[4], KEYS[6], KEYS[7]
local MINUTE = tonumber(ARGV[2])
local RETAIN = int(2 * DAY) -- after the last stamp or renewal of what was started
local BOOK = 32 -- how many started minutes are told apart: as many put backs as may come in a row
local RANK = {claimed = 1, started = 2, succeeded = 3, failed = 3}

-- look_tick says what stands under the tick. Owner is set for a record in our form, with or without expiry.
local function look_tick()
  local seen = {kind = redis.call('TYPE', LOCK).ok, state = 'Free', value = '', left = 0, stage = ''}
  if seen.kind == 'none' then return seen end
  seen.state, seen.left = 'Foreign', redis.call('PTTL', LOCK)
  if seen.kind ~= 'string' then return seen end
  local value = redis.call('GETRANGE', LOCK, 0, 1023)
  local owner, digits, stage = string.match(value, '^([^#%c]+)#(%d+)#(%l+)$')
  if not owner or #digits > MAX_DIGITS or not RANK[stage] or #value > 1000 then return seen end
  seen.value, seen.owner, seen.fence, seen.stage = value, owner, tonumber(digits), stage
  if seen.left >= 0 then seen.state = 'Held' end
  return seen
end

-- started is the minutes that were started, newest first. How is redis.call, or redis.pcall where a damaged helper must not stand in the way.
local function started(how)
  local stored, minutes = how('GET', NEWEST), {}
  if type(stored) == 'string' then
    for m in string.gmatch(stored, '%d+') do minutes[#minutes + 1] = tonumber(m) end
  end
  return minutes
end

-- newest ignores what a clock that was far ahead left.
local function newest(minutes, t)
  for _, m in ipairs(minutes) do
    if m <= math.floor((t + DAY) / 60000) then return m end
  end
  return 0
end

local function write_started(minutes)
  if #minutes == 0 then return redis.call('DEL', NEWEST) end
  local words = {}
  for i = 1, math.min(#minutes, BOOK) do words[i] = int(minutes[i]) end
  redis.call('SET', NEWEST, table.concat(words, ' '), 'PX', RETAIN)
end

-- without is the minutes but this tick's.
local function without(minutes)
  local others = {}
  for _, m in ipairs(minutes) do
    if m ~= MINUTE then others[#others + 1] = m end
  end
  return others
end

local function enrol(minutes)
  local all = without(minutes)
  all[#all + 1] = MINUTE
  table.sort(all, function(a, b) return a > b end)
  write_started(all)
end

-- tick_highest is the highest fencing token of any tick of the key.
local function tick_highest(t, how) return (remembered({fence = ''}, t + AHEAD, how)) end

-- number notes a fencing token down, which never goes back.
local function number(n, t) redis.call('SET', FENCE, int(math.max(n, tick_highest(t, redis.pcall))), 'PX', REMEMBER) end

-- give_back frees a tick, and notes whose it was: a stamp of that grant which is still under way makes it no more.
local function give_back(seen, channel)
  redis.call('SET', BACK, seen.owner .. '#' .. int(seen.fence), 'PX', RETAIN)
  redis.call('DEL', LOCK)
  redis.pcall('PUBLISH', channel, '')
end

-- taken reports whether the tick was claimed anew after the grant with this number had started it. Those that came before are former ones too.
local function taken(fence)
  local stored = redis.pcall('GET', TAKEN)
  return type(stored) == 'string' and tonumber(fence) <= (tonumber(stored) or 0)
end

local function tick_reply(status, seen, minutes, t)
  return {ARGV[1], status, seen.state, seen.kind, seen.value, int(seen.left), int(tick_highest(t, redis.pcall)), '', 'None',
    seen.state == 'Held' and seen.stage or '', int(newest(minutes, t))}
end
