-- drained: is anything left that a draining worker would wait for: in its queues and for its types, does anything wait, is
-- anything parked or running, is a retry due? Scheduled and held jobs do not count, nor what only a person can start: jobs of paused
-- queues, and those that a paused batch has aside; these are told apart. Touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now, n, queue * n, type * the rest
-- role: worker
-- reply: [ waiting, parked, running, due, paused, aside ]
--        parked counts the lanes of a type in all queues, where one of these has any; so does paused, which also counts all that waits
--        in those queues; aside: of these types
--
-- format: any
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

-- Its queues that are served, and those that are paused.
local function split_queues(ARGV, n)
    local served, halted = {}, {}
    for i = 3, 2 + n do
        local list = call('HEXISTS', P .. 'halted', 'q/' .. ARGV[i]) == 0 and served or halted
        list[#list + 1] = ARGV[i]
    end
    return served, halted
end

local function waiting_in(queues)
    local waiting = 0
    for _, queue in ipairs(queues) do waiting = waiting + call('LLEN', P .. 'queue:' .. queue) end
    return waiting
end

local function parked_in(queues, name)
    local most = 0
    for _, queue in ipairs(queues) do most = max(most, parked_of(queue, name)) end
    return most
end

local function drained(ARGV)
    local n = tonumber(ARGV[2])
    if not is_whole(n) or #ARGV < 2 + n then return refuse('drained: wrong arguments') end
    local wrong = check.wrong_kind('halted', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local served, halted = split_queues(ARGV, n)
    local parked, running, paused, aside = 0, 0, waiting_in(halted), 0
    for t = 3 + n, #ARGV do
        parked = parked + parked_in(served, ARGV[t])
        paused = paused + parked_in(halted, ARGV[t])
        running = running + running_of(ARGV[t])
        aside = aside + max(0, lease.counted(call('HGET', P .. 'stats:' .. ARGV[t], 'set_aside')))
    end
    return {waiting_in(served), parked, running, call('ZCOUNT', P .. 'later', '-inf', us(now)), paused, aside}
end

return drained
