-- KEYS: lock, fence, last. ARGV: tag, token, keep, unclean, channel
-- Answers: released, or lost (view). What was released before stays so, also after one more tenure.
master_only()
local token, keep = ARGV[2], tonumber(ARGV[3])
local seen, last = look(), past(redis.pcall)
if seen.owner and seen.value == token then
  redis.pcall('HSET', LAST, 'owner', seen.owner, 'fence', int(seen.fence), 'foreign', '',
    'ended', ARGV[4] == '1' and 'unclean' or 'clean')
  redis.pcall('PEXPIRE', LAST, REMEMBER)
  if keep > 0 then
    redis.call('SET', LOCK, 'released/' .. token, 'PX', int(keep))
  else
    redis.call('DEL', LOCK)
    redis.pcall('PUBLISH', ARGV[5], '')
  end
  return {ARGV[1], 'released'}
end
if seen.value == 'released/' .. token or last.prev == token or (last.token == token and last.ended ~= '') then
  return {ARGV[1], 'released'}
end
return refuse('lost', seen, last)
