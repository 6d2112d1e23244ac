-- drained: is anything left that a draining worker would wait for: in its queues and for its types, does anything wait, is
-- anything parked or running, is a retry due? Scheduled and held jobs do not count, nor what only a person can start: jobs of paused
-- queues, of types and keys that are paused until they are resumed, and those that a paused batch has aside; these are told apart. Touches nothing.
--
-- ARGV: now, n, queue * n, type * the rest
-- role: worker
-- reply: [ waiting, parked, running, due, paused, aside, halted, stopped ]
--        parked counts the lanes of a type in all queues, where one of these has any; so does paused, of those that are paused; halted: what
--        waits in these; aside: of these types; stopped: in lanes of these types and queues that sleep at a gate of a paused key, or are of a paused type
--
-- format: any
-- uses: check counters key_pauses lane types

local COUNTERS = {'pulled', 'served', 'done', 'retried', 'dead', 'back', 'parked', 'returned', 'set_aside'}
local STOPPED_MOST = 100 -- lanes that are looked at of a paused key: one for each type that goes by it
local NO_PAUSES = {count = 0, gates = {}}

-- Counts jobs of the lanes that wait at a gate of a paused key, by their type.
local function count_stopped(stopped, queue, name)
    for _, node in ipairs(call('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', us(STOPPED_MOST - 1))) do
        local kind = match(node, '^[^/]+')
        local n = call_safe('LLEN', P .. 'lane:' .. queue .. '/' .. node)
        if type(n) == 'number' then stopped[kind] = (stopped[kind] or 0) + n end
    end
end

-- True when a lane sleeps in a queue at another gate than those of paused keys. pauses: {count =, gates = {name = true}}; stopped: what the others
-- have.
local function sleeps(queue, pauses, stopped)
    local sleep = P .. 'sleep:' .. queue
    local n, any = call('ZCARD', sleep), false
    if n == 0 or n > pauses.count then return n > 0 end -- more gates than are paused
    for _, name in ipairs(call('ZRANGE', sleep, '0', '-1')) do
        if pauses.gates[name] then
            count_stopped(stopped, queue, name)
        else
            any = true
        end
    end
    return any
end

-- Returns the queues, and their lanes that are to run alone, in which a lane waits, and whether one sleeps there.
local function with_lanes(queues, pauses, stopped)
    local found, asleep = {}, false
    for _, queue in ipairs(queues) do
        for _, name in ipairs({queue, queue .. '!'}) do
            if call('EXISTS', P .. 'wake:' .. name, P .. 'held:' .. name, P .. 'sleep:' .. name) > 0 then
                found[#found + 1] = name
                asleep = sleeps(name, pauses, stopped) or asleep
            end
        end
    end
    return found, asleep
end

-- Returns the counted jobs of a type in lanes, when one of these queues has any of the type: a lane in its ring, or maybe one that sleeps.
local function parked_in(queues, asleep, name, counted)
    if #queues == 0 then return 0 end
    local rings = {}
    for i, queue in ipairs(queues) do rings[i] = P .. 'ring:' .. queue .. '/' .. name end
    if call('EXISTS', unpack(rings)) > 0 then return max(1, counted) end
    return asleep and counted or 0
end

-- Splits its queues into those that are served, and those that are paused.
local function split_queues(ARGV, n)
    local served, halted = {}, {}
    for i = 3, 2 + n do
        local list = call('HEXISTS', P .. 'halted', 'q/' .. ARGV[i]) == 0 and served or halted
        list[#list + 1] = ARGV[i]
    end
    return served, halted
end

-- True when somebody must resume the type before its jobs start.
local function is_stopped(name)
    local pause = types.load(name).pause
    return pause and pause.pause_until == key_pauses.ENDLESS
end

local function waiting_in(queues)
    local waiting = 0
    for _, queue in ipairs(queues) do waiting = waiting + call('LLEN', P .. 'queue:' .. queue) end
    return waiting
end

local function drained(ARGV)
    local n = tonumber(ARGV[2])
    if not is_whole(n) or #ARGV < 2 + n then return refuse('drained: wrong arguments') end
    local wrong = check.wrong_kind('halted', 'hash') or key_pauses.wrong()
    if wrong then return check.refuse_key(wrong) end
    local served, halted = split_queues(ARGV, n)
    local pauses, in_stopped = key_pauses.endless(), {}
    local lanes, asleep = with_lanes(served, pauses, in_stopped)
    local halted_lanes, halted_asleep = with_lanes(halted, NO_PAUSES, {})
    local parked, running, paused, aside, stopped = 0, 0, 0, 0, 0
    for t = 3 + n, #ARGV do
        local name, s = ARGV[t], call('HMGET', P .. 'stats:' .. ARGV[t], unpack(COUNTERS))
        local counted = lane.parked_by(s[7], s[8], s[2])
        for i = 1, #COUNTERS do s[i] = counters.number(s[i]) end
        local halts = counted > 0 and is_stopped(name) and parked_in(lanes, asleep, name, counted) or in_stopped[name] or 0
        stopped = stopped + halts
        parked = parked + (halts < counted and parked_in(lanes, asleep, name, counted - halts) or 0)
        paused = paused + parked_in(halted_lanes, halted_asleep, name, counted)
        running = running + max(0, s[1] + s[2] - s[3] - s[4] - s[5] - s[6])
        aside = aside + max(0, s[9])
    end
    return {waiting_in(served), parked, running, call('ZCOUNT', P .. 'later', '-inf', us(now)), paused, aside, waiting_in(halted),
            stopped}
end

return drained
