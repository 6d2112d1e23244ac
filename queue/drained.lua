-- drained: is anything left that a draining worker would wait for: in its queues and for its types, does anything wait, is
-- anything parked or running, is a retry due? Scheduled and held jobs do not count. Touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now, n, queue * n, type * the rest
-- reply: [ waiting, parked, running, due ]
-- uses: core/base.lua core/now.lua queue/check.lua

local n = tonumber(ARGV[2])
if not is_whole(n, 1) or #ARGV < 2 + n then return refuse('drained: wrong arguments') end

local waiting, parked, running = 0, 0, 0
for i = 3, 2 + n do waiting = waiting + call('LLEN', P .. 'queue:' .. ARGV[i]) end
for t = 3 + n, #ARGV do
    for i = 3, 2 + n do parked = parked + call('LLEN', P .. 'lane:' .. ARGV[i] .. '/' .. ARGV[t] .. '/') end
    local s = call('HMGET', P .. 'stats:' .. ARGV[t], 'pulled', 'served', 'done', 'retried', 'dead', 'back')
    for k = 1, 6 do s[k] = tonumber(s[k] or 0) end
    running = running + max(0, s[1] + s[2] - s[3] - s[4] - s[5] - s[6])
end
return {waiting, parked, running, call('ZCOUNT', P .. 'later', '-inf', us(now))}
