-- KEYS: cluster. ARGV: tag, nonce, takeover, keep
-- Answers: announced (the nonce that stands there now).
local there = redis.call('GET', KEYS[1])
if not there or ARGV[3] == '1' or there == ARGV[2] then
  there = ARGV[2]
  redis.call('SET', KEYS[1], there, 'PX', ARGV[4])
end
return {ARGV[1], 'announced', there}
