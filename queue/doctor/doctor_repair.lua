-- doctor_repair: how each fault is repaired, in the call that has judged it. What is written could have been written by the other
-- scripts: what stands nowhere is put where the next claim looks.
--
--   doctor_repair.<repair>(name, family, ...) -> what was done, in words; nil: nothing, and what to do then. name, family: of the
--                                                thing; the rest are the values of the fault's sentence
--
-- uses: bell doctor_judge doctor_slots ends gate lane lease
local doctor_repair = {}

local LEASE_US = 30000000 -- of a worker that does not say how long it is

-- ---- Where lanes and types wait

local order_of = doctor_judge.order_of

local function set_star(queue)
    local first = call('ZRANGE', P .. 'sleep:' .. queue, '0', '0', 'WITHSCORES')
    if first[2] then
        call('ZADD', P .. 'wake:' .. queue, first[2], '*')
    else
        call('ZREM', P .. 'wake:' .. queue, '*')
    end
end

-- Somebody leaves a gate; so does the gate its order, when nobody waits there any more.
local function leave(queue, gate_name, node)
    call('ZREM', P .. 'wait:' .. queue .. '/' .. gate_name, node)
    if call('EXISTS', P .. 'wait:' .. queue .. '/' .. gate_name) == 0 then
        call('ZREM', P .. order_of(gate_name) .. ':' .. queue, gate_name)
        set_star(queue)
    end
end

-- A type with lanes waits at one gate or is held; the gates are all at which it waits.
local function place_type(queue, kind)
    local held, gates = doctor_judge.type_places(queue, kind, true)
    if not held and #gates == 1 or held and #gates == 0 then return end
    lane.look_at(queue, kind, now)
    call('ZREM', P .. 'held:' .. queue, kind)
    for _, name in ipairs(gates) do
        if name ~= '-' then leave(queue, name, kind) end
    end
    bell.ring(queue)
end

-- A lane that stands nowhere, or in several places.
function doctor_repair.lane(_, _, name)
    local queue, kind, key = lease.lane_parts(name)
    local ringed, gates = doctor_judge.lane_places(name, true)
    if not ringed then call('ZADD', P .. 'ring:' .. queue .. '/' .. kind, us(now), key) end
    for _, gate_name in ipairs(gates) do leave(queue, gate_name, kind .. '/' .. key) end
    place_type(queue, kind)
    return 'it is in its ring, and the next claim looks at its type'
end

function doctor_repair.type(_, _, kind, queue)
    place_type(queue, kind)
    return 'the next claim looks at it'
end

local REMOVED = 'removed from the list'

-- A name of a lane or type that has nothing: a lane in its ring, a waiter at a gate, a type that is held.
function doctor_repair.name(name, family)
    if family == 'ringed' then
        local queue, kind, key = lease.lane_parts(name)
        call('ZREM', P .. 'ring:' .. queue .. '/' .. kind, key)
    elseif family == 'held' then
        local queue, kind = match(name, '^([^/]+)/(.*)$')
        call('ZREM', P .. 'held:' .. queue, kind)
    else
        local place, node = match(name, '^(%S+) (.*)$')
        local queue, gate_name = match(place, '^([^/]+)/(.*)$')
        leave(queue, gate_name, node)
    end
    return REMOVED
end

function doctor_repair.credit(name)
    local queue, kind, key = lease.lane_parts(name)
    call('HDEL', P .. 'credit:' .. queue .. '/' .. kind, key)
    return REMOVED
end

function doctor_repair.gate(_, _, gate_name, queue)
    call('ZADD', P .. order_of(gate_name) .. ':' .. queue, us(now), gate_name)
    if order_of(gate_name) == 'sleep' then set_star(queue) end
    bell.ring(queue)
    return 'it is due now, and the next claim finds when it opens'
end

function doctor_repair.gate_empty(_, _, order, queue, gate_name)
    call('ZREM', P .. order .. ':' .. queue, gate_name)
    set_star(queue)
    return REMOVED
end

function doctor_repair.star(queue)
    set_star(queue)
    bell.ring(queue)
    return '* now agrees with sleep'
end

-- ---- Keys of others

-- A derived key of another kind is kept under another name. What belongs there is mended by further passes or by the next jobs. A lane
-- of another kind has no jobs of ours.
function doctor_repair.key(name)
    local other = 'foreign:' .. name
    if call('RENAMENX', P .. name, P .. other) == 0 then
        other = other .. '.' .. us(now)
        if call('RENAMENX', P .. name, P .. other) == 0 then return nil, 'weir doctor --repair once more' end
    end
    return format('it was renamed to %s%s', P, other)
end

-- ---- Workers

-- It may be alive: it is given the time of a lease to speak up, then reap takes its jobs back.
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

function doctor_repair.duty(group)
    call('HDEL', P .. 'duty', group)
    return REMOVED
end

-- ---- The rest

-- It is sealed already.
function doctor_repair.batch_open(name)
    ends.seal(name)
    return 'it has ended'
end

function doctor_repair.type_name(name)
    call('HSETNX', P .. 'types', name, '')
    return 'it is registered'
end

function doctor_repair.queue(name)
    call('SADD', P .. 'queues', name)
    if find(name, '!', 1, true) then call('ZADD', P .. 'alone', '0', name) end
    return 'it is registered'
end

function doctor_repair.counter(name)
    for _, counter in ipairs(doctor_judge.no_counters(name)) do call('HSET', P .. 'stats:' .. name, counter, '0') end
    return 'they count from 0'
end

function doctor_repair.occurrence(name)
    call('ZREM', P .. 'later', 's ' .. name .. '\n')
    return REMOVED
end

function doctor_repair.batch_gone(name)
    call('ZREM', P .. 'batches', name)
    return REMOVED
end

-- ---- What is counted

function doctor_repair.slots(name, _, _, _, leases)
    local _, rule = doctor_slots.says(name)
    gate.recount(name, rule, leases)
    gate.save()
    lane.opened(name)
    lane.wake_opened()
    return 'it counts them again'
end

local function add(name, counter, n) call('HINCRBY', P .. 'stats:' .. name, counter, us(n)) end

local SET_RIGHT = 'the counters were set right'

-- As if so many jobs had been enqueued, leased, and of those to be parked handed back: all else that is counted agrees as before.
function doctor_repair.counters(name)
    local off = doctor_judge.counters_off(name)
    local both = off.parked + off.leased
    for counter, n in pairs{enqueued = both, pulled = both, back = off.parked, returned = off.parked, scheduled = off.later} do
        add(off.type, counter, n)
    end
    return SET_RIGHT
end

-- No queue holds anything: what is counted as waiting there is gone.
function doctor_repair.queued()
    for name, n in pairs(doctor_judge.waiting()) do
        if n > 0 then add(name, 'enqueued', -n) end
    end
    return SET_RIGHT
end

-- Heartbeats count them where nobody has.
function doctor_repair.dead_bytes()
    call('DEL', P .. 'dead_bytes')
    return 'the next heartbeats of workers count them'
end

return doctor_repair
