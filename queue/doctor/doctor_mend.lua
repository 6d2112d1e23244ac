-- doctor_mend: mends one thing, if it is wrong still: what is wrong is judged anew within this call. What it writes could have
-- been written by the other scripts: who stands nowhere is put where the next claim looks.
--
-- KEYS[1] prefix
-- ARGV: now, what, then
--       "thing"   family, name, n, limit * n (that gates are named after and that are not there)
--       "gate"    gate, worker, ...: what it counts in flight is counted anew, with workers that are not registered
--       "counters" type, the counters as doctor_counts told them, then counter, n ...: n is added, if they are the same still
--       "dead_bytes" bytes as it said
-- reply: [ 1 when something was mended, what was done in words ]
-- uses: bell doctor_judge doctor_slots ends gate lane lease

local LEASE_US = 30000000 -- of a worker that does not say how long it is

-- ---- Where lanes and types wait

local function order_of(gate_name) return find(gate_name, '/', 1, true) and 'sleep' or 'wake' end

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

local function place_lane(name)
    local queue, kind, key = lease.lane_parts(name)
    local ringed, gates = doctor_judge.lane_places(name, true)
    if not ringed then call('ZADD', P .. 'ring:' .. queue .. '/' .. kind, us(now), key) end
    for _, gate_name in ipairs(gates) do leave(queue, gate_name, kind .. '/' .. key) end
    place_type(queue, kind)
    return 'it stands in its ring now, and its type is looked at'
end

local mend = {}

-- The lane, or queue and type, that was judged; of a waiter, "<queue>/<gate> <node>", it is the node.
local function judged(name, family)
    if family ~= 'waiter' then return name end
    local queue, node = match(name, '^([^/]+)/%S+ (.*)$')
    return queue .. '/' .. node
end

local function mend_lane(name, family) return place_lane(judged(name, family)) end
mend['lane-nowhere'], mend['lane-twice'] = mend_lane, mend_lane

local function mend_ring(name, family)
    place_type(match(judged(name, family), '^([^/]+)/(.*)$'))
    return 'it is looked at by the next claim'
end
mend['type-nowhere'], mend['type-twice'] = mend_ring, mend_ring

local REMOVED = 'the name was removed'

-- A name of a lane or type that has nothing: a lane in its ring, a waiter at a gate, a type that is held.
local function drop_name(name, family)
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
mend['no-lane'], mend['no-ring'], mend['misplaced'] = drop_name, drop_name, drop_name

mend['credit'] = function(name)
    local queue, kind, key = lease.lane_parts(name)
    call('HDEL', P .. 'credit:' .. queue .. '/' .. kind, key)
    return REMOVED
end

mend['gate-unlisted'] = function(name)
    local queue, gate_name = match(name, '^([^/]+)/(.*)$')
    call('ZADD', P .. order_of(gate_name) .. ':' .. queue, us(now), gate_name)
    if order_of(gate_name) == 'sleep' then set_star(queue) end
    bell.ring(queue)
    return 'it is due now, and the next claim finds when it opens'
end

mend['gate-empty'] = function(name, family)
    local queue, gate_name = match(name, '^(%S+) (.*)$')
    call('ZREM', P .. family .. ':' .. queue, gate_name)
    set_star(queue)
    return REMOVED
end

mend['star'] = function(queue)
    set_star(queue)
    bell.ring(queue)
    return 'it says what sleep does'
end

-- ---- Keys of others

-- A key that is derived holds something else: what is there is kept under another name, and what belongs there is mended by further passes,
-- or by the next jobs. A lane of another kind has no jobs of ours.
mend['in-the-way'] = function(name)
    local other = 'foreign:' .. name
    if call('RENAMENX', P .. name, P .. other) == 0 then
        other = other .. '.' .. us(now)
        if call('RENAMENX', P .. name, P .. other) == 0 then return nil end
    end
    return format('it is %s%s now', P, other)
end

-- ---- Workers

-- It may be alive: it is given the time of a lease to speak up, then reap takes its jobs back.
mend['worker-unlisted'] = function(id)
    local info = call('HGET', P .. 'active:' .. id, '@')
    local lease_s = tonumber(match(info or '', '"lease":([%d.]+)') or nil)
    local lease_us = lease_s and min(lease_s, 86400) * 1000000 or LEASE_US
    if not info then call('HSET', P .. 'active:' .. id, '@', '{}') end
    call('ZADD', P .. 'workers', us(floor(now + lease_us)), id)
    return format('it has %d s to speak up; then the next heartbeat of another worker takes its jobs back', ceil(lease_us / 1000000))
end

-- With leases it stays, so that reap takes them back at its deadline.
mend['worker-bare'] = function(id)
    if call('EXISTS', P .. 'active:' .. id) == 1 then
        call('HSET', P .. 'active:' .. id, '@', '{}')
        return 'its jobs go back at its deadline'
    end
    call('ZREM', P .. 'workers', id)
    return REMOVED
end

mend['duty'] = function(group)
    call('HDEL', P .. 'duty', group)
    return REMOVED
end

-- ---- The rest

-- It is sealed already.
mend['batch-open'] = function(name)
    ends.seal(name)
    return 'it has ended now'
end

mend['unregistered'] = function(name, family)
    if family == 'type' then
        call('HSETNX', P .. 'types', name, '')
    else
        call('SADD', P .. 'queues', name)
        if find(name, '!', 1, true) then call('ZADD', P .. 'alone', '0', name) end
    end
    return 'it is registered now'
end

mend['counter'] = function(name)
    for _, counter in ipairs(doctor_judge.no_counters(name)) do call('HSET', P .. 'stats:' .. name, counter, '0') end
    return 'it counts from 0'
end

mend['occurrence'] = function(name)
    call('ZREM', P .. 'later', 's ' .. name .. '\n')
    return REMOVED
end

mend['batch-gone'] = function(name)
    call('ZREM', P .. 'batches', name)
    return REMOVED
end

local function mend_thing(ARGV)
    local family, name, n = ARGV[3], ARGV[4], tonumber(ARGV[5])
    if not is_whole(n) or #ARGV ~= 5 + n or not doctor_judge.is_family(family) then
        return refuse('doctor_mend: wants now, thing, family, name, n, n limits')
    end
    doctor_judge.gone = {}
    for i = 6, #ARGV do doctor_judge.gone[i - 5] = ARGV[i] end
    local kind = doctor_judge.look(family, name, true)
    if not kind or not mend[kind] then return {0, ''} end
    local done = mend[kind](name, family)
    return done and {1, done} or {0, ''}
end

-- ---- What is counted

local function mend_gate(ARGV)
    local name, workers = ARGV[3], {}
    for i = 4, #ARGV do workers[#workers + 1] = ARGV[i] end
    local counts = doctor_slots.count({name}, workers)
    local says, rule = doctor_slots.says(name)
    if not counts or not says or says == counts[name] then return {0, ''} end
    gate.recount(name, rule, counts[name])
    gate.save()
    lane.opened(name)
    lane.wake_opened()
    return {1, format('it counts %d now', counts[name])}
end

local function mend_counters(ARGV)
    if doctor_judge.counters(ARGV[3]) ~= ARGV[4] then return {0, ''} end
    for i = 5, #ARGV - 1, 2 do call('HINCRBY', P .. 'stats:' .. ARGV[3], ARGV[i], ARGV[i + 1]) end
    return {1, 'they were set right'}
end

-- Heartbeats count them anew where nobody has.
local function mend_dead_bytes(ARGV)
    if call_safe('HGET', P .. 'dead_bytes', 'bytes') ~= ARGV[3] then return {0, ''} end
    call('DEL', P .. 'dead_bytes')
    return {1, 'the next heartbeats of workers count them'}
end

local ways = {thing = {mend_thing, 5}, gate = {mend_gate, 3}, counters = {mend_counters, 4},
              dead_bytes = {mend_dead_bytes, 3}}

local function doctor_mend(ARGV)
    local way = ways[ARGV[2] or '']
    if not way or #ARGV < way[2] then return refuse('doctor_mend: wants now, what, and what belongs to it') end
    return way[1](ARGV)
end

return doctor_mend
