-- doctor_repair: how each fault is repaired, in the call that has judged it. What is written could have been written by the other
-- scripts: what stands nowhere is put where the next claim looks. What follows from a repair (a gate where nobody waits now) is found
-- and repaired by the next pass.
--
--   doctor_repair.<repair>(name, family, ...) -> what was done, in words; nil: nothing, and what to do then. name, family: of the
--                                                thing; the rest are the values of the fault's sentence
--
-- uses: bell doctor_judge doctor_slots ends gate lane registry
local doctor_repair = {}

local LEASE_US = 30000000 -- of a worker that does not say how long it is
local REMOVED, REGISTERED, SET_RIGHT = 'removed from the list', 'it is registered', 'the counters were set right'

-- ---- Where lanes and types wait

-- A lane goes into its ring, a type where the next claim looks; they leave all other places.
function doctor_repair.place(name, family)
    local queue, kind, key = match(match(name, '^%S+'), '^([^/]+)/([^/]+)/?(.*)$')
    local is_lane = family == 'lane'
    local place = is_lane and 'ring:' .. queue .. '/' .. kind or 'wait:' .. queue .. '/-'
    local others = doctor_judge.places(family, name, true)
    if is_lane then call('ZADD', P .. place, us(now), key) else lane.type_is_due(queue, kind, now) end
    for _, other in ipairs(others) do
        if other.key ~= place then call('ZREM', P .. other.key, other.member) end
    end
    bell.ring(queue)
    return is_lane and 'it is in its ring' or 'the next claim looks at it'
end

function doctor_repair.listed(_, _, key, member)
    call(call('TYPE', P .. key).ok == 'hash' and 'HDEL' or 'ZREM', P .. key, member)
    return REMOVED
end

function doctor_repair.star(queue)
    local first = call('ZRANGE', P .. 'sleep:' .. queue, '0', '0', 'WITHSCORES')
    if first[2] then
        call('ZADD', P .. 'wake:' .. queue, first[2], '*')
    else
        call('ZREM', P .. 'wake:' .. queue, '*')
    end
    bell.ring(queue)
    return '* now agrees with sleep'
end

function doctor_repair.gate(_, _, gate_name, queue)
    call('ZADD', P .. doctor_judge.order_of(gate_name) .. ':' .. queue, us(now), gate_name)
    doctor_repair.star(queue)
    return 'it is due now, and the next claim finds when it opens'
end

function doctor_repair.slots(name, _, _, _, leases)
    local _, rule = doctor_slots.says(name)
    gate.recount(name, rule, leases)
    gate.save()
    return 'it counts them again'
end

-- ---- Keys of others

-- A derived key of another kind is kept under another name. What belongs there is mended by further passes or by the next jobs. A queue
-- or a lane of another kind has no jobs of ours.
function doctor_repair.key(name)
    local other = 'foreign:' .. name
    if call('RENAMENX', P .. name, P .. other) == 0 then
        other = other .. '.' .. us(now)
        if call('RENAMENX', P .. name, P .. other) == 0 then return nil, 'weir doctor --repair once more' end
    end
    return format('it was renamed to %s%s', P, other)
end

-- ---- Workers

-- Registers a worker again. It may be alive: it is given the time of a lease to speak up, then reap takes its jobs back.
function doctor_repair.worker_unlisted(id)
    local info = call('HGET', P .. 'active:' .. id, '@')
    local lease_s = tonumber(match(info or '', '"lease":([%d.]+)') or nil)
    local lease_us = lease_s and min(lease_s, 86400) * 1000000 or LEASE_US
    if not info then call('HSET', P .. 'active:' .. id, '@', '{}') end
    call('ZADD', P .. 'workers', us(floor(now + lease_us)), id)
    return format('it has %d s to speak up; then the next heartbeat of another worker takes its jobs back', ceil(lease_us / 1000000))
end

-- With leases it stays, so that reap takes them back at its deadline.
function doctor_repair.worker_bare(id)
    if call('EXISTS', P .. 'active:' .. id) == 1 then
        call('HSET', P .. 'active:' .. id, '@', '{}')
        return 'its jobs go back at its deadline'
    end
    call('ZREM', P .. 'workers', id)
    return REMOVED
end

-- ---- The rest

-- Registers a queue, or a type.
function doctor_repair.register(name, _, _, list)
    if list == 'types' then
        call('HSETNX', P .. 'types', name, '')
    elseif list == 'key_rules' then
        call('SADD', P .. 'key_rules', name)
    else
        registry.add(name)
        if list == 'alone' then call('ZADD', P .. 'alone', '0', name) end
    end
    return REGISTERED
end

-- Seals a batch that is sealed already, which ends it.
function doctor_repair.batch_open(name)
    ends.seal(name)
    return 'it has ended'
end

function doctor_repair.occurrence(name)
    call('ZREM', P .. 'later', 's ' .. name .. '\n')
    return REMOVED
end

function doctor_repair.counter(name)
    for _, counter in ipairs(doctor_judge.no_counters(name)) do call('HSET', P .. 'stats:' .. name, counter, '0') end
    return 'they count from 0'
end

local function add(name, counter, n) call('HINCRBY', P .. 'stats:' .. name, counter, us(n)) end

-- As if so many jobs had been enqueued, leased, and of those to be parked handed back: all else that is counted agrees as before.
function doctor_repair.counters(name)
    local off = doctor_judge.counters_off(name)
    local both = off.parked + off.leased
    for counter, n in pairs{enqueued = both, pulled = both, back = off.parked, returned = off.parked, scheduled = off.later} do
        add(off.type, counter, n)
    end
    return SET_RIGHT
end

-- Where no queue holds anything, what is counted as waiting there is gone.
function doctor_repair.queued()
    local of_type, _, queued = doctor_judge.waiting()
    if queued > 0 then return nil, 'weir doctor --repair sets the counters right once all queues are empty' end
    for name, n in pairs(of_type) do
        if n > 0 then add(name, 'enqueued', -n) end
    end
    return SET_RIGHT
end

return doctor_repair
