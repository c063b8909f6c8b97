-- KEYS: lock, fence, last, waiting. ARGV: tag, token, ttl, shorten
-- Answers: renewed (and awaited, where another home waits), or lost (view). The key is never created.
master_only()
local seen = look()
if seen.owner and seen.value == ARGV[2] then
  extend(seen, tonumber(ARGV[3]), ARGV[4] == '1')
  local home = redis.pcall('GET', KEYS[4])
  if type(home) == 'string' and not begins(seen.owner, home) then return {ARGV[1], 'renewed', 'awaited'} end
  return {ARGV[1], 'renewed'}
end
return refuse('lost', seen, past(redis.pcall))
