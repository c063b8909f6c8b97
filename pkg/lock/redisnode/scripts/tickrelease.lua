-- KEYS: those of a tick. ARGV: tag, minute, owner, fence, put back, channel
-- Answers: released, or lost | started (view). What is over stays, and that is as good as released.
master_only()
local owner, fence, put_back = ARGV[3], ARGV[4], ARGV[5] == '1'
local t = now()
local seen, minutes = look_tick(), started(redis.pcall)
if seen.owner == owner and seen.fence == tonumber(fence) then
  local rank = RANK[seen.stage]
  if rank == 3 and not put_back then return {ARGV[1], 'released'} end
  if rank == 3 or (rank == 2 and not put_back) then return tick_reply('started', seen, minutes, t) end
  if rank == 2 then write_started(without(minutes)) end
  give_back(seen, ARGV[6])
  return {ARGV[1], 'released'}
end
if redis.pcall('GET', BACK) == owner .. '#' .. fence then return {ARGV[1], 'released'} end
return tick_reply('lost', seen, minutes, t)
