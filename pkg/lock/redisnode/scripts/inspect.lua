-- KEYS: lock, fence, last. ARGV: tag
-- Answers: view.
local last = past(redis.pcall)
return reply('view', look(), last, (remembered(last, now() + AHEAD, redis.pcall)))
