-- KEYS: those of a tick. ARGV: tag, minute, owner, channel
-- Answers: abandoned. A tick that was started is left alone.
master_only()
local seen = look_tick()
if seen.owner == ARGV[3] and seen.stage == 'claimed' then give_back(seen, ARGV[4]) end
return {ARGV[1], 'abandoned'}
