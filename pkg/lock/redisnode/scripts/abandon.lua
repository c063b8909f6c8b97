-- KEYS: lock, fence, last. ARGV: tag, owner, channel
-- Answers: abandoned. Whoever never heard that it had the key has started nothing, so the tenure counts as clean, unless it continued an
-- earlier one that did start.
master_only()
local owner = ARGV[2]
local seen, last = look(), past(redis.pcall)
if last.owner == owner and last.ended == '' then
  redis.pcall('HSET', LAST, 'ended', last.continued and 'unclean' or 'clean')
end
if seen.owner == owner then
  redis.call('DEL', LOCK)
  redis.pcall('PUBLISH', ARGV[3], '')
end
return {ARGV[1], 'abandoned'}
