-- drained: is anything left that a draining worker would wait for: in its queues and for its types, does anything wait, is
-- anything parked or running, is a retry due? Scheduled and held jobs do not count, nor those of paused queues. Touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now, n, queue * n, type * the rest
-- reply: [ waiting, parked, running, due ]
--        parked counts the lanes of a type in all queues, where one of these has any
--
-- uses: check lane lease

local COUNTERS = {'pulled', 'served', 'done', 'retried', 'dead', 'back'}

local function running_of(name)
    local s = call('HMGET', P .. 'stats:' .. name, unpack(COUNTERS))
    for i = 1, #COUNTERS do s[i] = lease.counted(s[i]) end
    return max(0, s[1] + s[2] - s[3] - s[4] - s[5] - s[6])
end

-- Jobs of a type in lanes, when that queue has any of it: a lane in its ring, or maybe one of those that sleep.
local function parked_of(queue, name)
    local counted, alone = lane.parked(name), queue .. '!'
    if call('EXISTS', P .. 'ring:' .. queue .. '/' .. name, P .. 'ring:' .. alone .. '/' .. name) > 0 then return max(1, counted) end
    return call('EXISTS', P .. 'sleep:' .. queue, P .. 'sleep:' .. alone) > 0 and counted or 0
end

local function served_queues(ARGV, n)
    local queues = {}
    for i = 3, 2 + n do
        if call('HEXISTS', P .. 'halted', 'q/' .. ARGV[i]) == 0 then queues[#queues + 1] = ARGV[i] end
    end
    return queues
end

local function drained(ARGV)
    local n = tonumber(ARGV[2])
    if not is_whole(n, 1) or #ARGV < 2 + n then return refuse('drained: wrong arguments') end
    local wrong = check.wrong_kind('halted', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local waiting, parked, running = 0, 0, 0
    local queues = served_queues(ARGV, n)
    for _, queue in ipairs(queues) do waiting = waiting + call('LLEN', P .. 'queue:' .. queue) end
    for t = 3 + n, #ARGV do
        local most = 0
        for _, queue in ipairs(queues) do most = max(most, parked_of(queue, ARGV[t])) end
        parked = parked + most
        running = running + running_of(ARGV[t])
    end
    return {waiting, parked, running, call('ZCOUNT', P .. 'later', '-inf', us(now))}
end

return drained
