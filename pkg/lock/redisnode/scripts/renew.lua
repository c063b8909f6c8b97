-- KEYS: lock, fence, last. ARGV: tag, token, ttl, shorten
-- Answers: renewed, or lost (view). The key is never created.
master_only()
local seen = look()
if seen.owner and seen.value == ARGV[2] then
  extend(seen, tonumber(ARGV[3]), ARGV[4] == '1')
  return {ARGV[1], 'renewed'}
end
return refuse('lost', seen, past(redis.pcall))
