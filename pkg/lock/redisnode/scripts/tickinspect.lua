-- KEYS: those of a tick. ARGV: tag, minute
-- Answers: view.
return tick_reply('view', look_tick(), started(redis.pcall), now())
