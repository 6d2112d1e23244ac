-- lane: the jobs of one (queue, type, key) that were read and could not start, first in first out; and where they wait.
--
--   ring:<queue>/<type>   the type's lanes whose key gates are open: key -> ticket
--   wait:<queue>/<gate>   what waits at a gate: types, by name, at one for all keys; lanes, as <type>/<key>, at one of a key
--   sleep:<queue>         when the gates open at which lanes wait
--   wake:<queue>          when the gates open at which types wait; and `*`, as long as a lane sleeps: not later than the first of sleep
--   held:<queue>          due types that no worker which looked can run
--
-- A ticket is the time of the last service: the least recently served comes first. A lane is not empty exactly when it is in
-- its ring or waits at one gate; a ring is not empty exactly when its type waits at one gate or is held. The gate `-` is
-- always open: types wait there that must be checked again, and types without a gate for all keys.
--
-- These functions move jobs without asking gates; claim decides what waits where, and wake.lua makes due what waits at a gate.
--
-- uses: bell body check counters heads lane_names large later_records longest registry slices types
local lane = {}

local FORMER_MOST = 1000 -- gates looked through for a lane that waits at one that its type does not ask any more: 1 ms

-- Says which key of a queue has another kind, of those that type_is_due writes; nil: none.
function lane.wrong_due(queue)
    return check.wrong_kind('wait:' .. queue .. '/-', 'zset') or check.wrong_kind('wake:' .. queue, 'zset')
end

-- Says what is wrong with the keys that give_back writes; nil: nothing.
function lane.wrong(name)
    local queue, kind = lane_names.parts(name)
    return lane_names.is_alone(name) and check.wrong_kind('alone', 'zset') or check.wrong_kind('lane:' .. name, 'list') or check.wrong_kind('ring:' .. queue .. '/' .. kind, 'zset')
        or lane.wrong_due(queue) or check.wrong_kind('sleep:' .. queue, 'zset') or check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
        or check.wrong_kind('held:' .. queue, 'zset')
end

-- Returns how many jobs of a type are in lanes, by these counters.
function lane.parked_by(parked, returned, served)
    return max(0, counters.number(parked) + counters.number(returned) - counters.number(served))
end

function lane.parked(kind) return lane.parked_by(unpack(call('HMGET', P .. 'stats:' .. kind, 'parked', 'returned', 'served'))) end

-- Lets the next claim serve a type, whose ring is not empty.
function lane.type_is_due(queue, kind, ticket)
    call('ZADD', P .. 'wait:' .. queue .. '/-', us(ticket), kind)
    call('ZADD', P .. 'wake:' .. queue, us(now), '-')
end

-- Lets the next claim check a gate at which types or lanes wait: when it opens for the first may have changed.
function lane.gate_is_due(queue, name)
    local asleep = find(name, '/', 1, true)
    if call('ZADD', P .. (asleep and 'sleep:' or 'wake:') .. queue, 'XX', 'CH', us(now), name) == 1 and asleep then
        call('ZADD', P .. 'wake:' .. queue, 'XX', 'LT', us(now), '*')
    end
end

-- Makes gates due, as another job is now the first of a lane that waits, or of the lanes of a type (key '').
function lane.gates_are_due(queue, kind, key)
    for _, spec in ipairs(types.specs(kind, key)) do lane.gate_is_due(queue, spec.name) end
end

-- True when jobs of a type may stand in lanes of keys that were found by another path.
local function resorts(kind)
    local t = types.load(kind)
    return t.path and t.lanes and t.lanes ~= t.path
end

local function put_in_ring(queue, kind, key, ticket)
    local ring = P .. 'ring:' .. queue .. '/' .. kind
    call('ZADD', ring, us(ticket), key)
    registry.add(queue)
    if find(queue, '!', 1, true) then call('ZADD', P .. 'alone', '0', queue) end
    if call('ZCARD', ring) == 1 and not call('ZSCORE', P .. 'held:' .. queue, kind) then lane.type_is_due(queue, kind, now) end
end

-- Appends a job to the tail of a lane.
function lane.append(queue, kind, key, entry)
    local length = call('RPUSH', P .. 'lane:' .. queue .. '/' .. kind .. '/' .. key, entry)
    large.note(queue .. '/', entry)
    if length == 1 then put_in_ring(queue, kind, key, now) end
    if length >= longest.LEAST and key ~= '' then longest.note(queue, kind, key, length, 1) end
end

local function was_taken_before(a, b)
    local slot, index = heads.taken(a)
    local slot_b, index_b = heads.taken(b)
    return slot and slot_b and (slot < slot_b or slot == slot_b and index < index_b) or false
end

local CAME_BACK_MOST = 64 -- jobs at the head of a lane, behind which another one may go

local read_load -- of this call: how much of the heads of lanes may still be read

local function forget_load() read_load = nil end

-- Merges jobs that came back before and were taken before the last of these: they leave the head of the lane, and go in before it. Jobs that were
-- taken first come first.
local function merge(key, entries)
    if not read_load then
        read_load = slices.load()
        at_next_call(forget_load)
    end
    local last, first = entries[#entries], 0
    local there = slices.read('LRANGE', key, 0, CAME_BACK_MOST, read_load)
    while there[first + 1] and was_taken_before(there[first + 1], last) do first = first + 1 end
    if first == 0 then return entries end
    call('LPOP', key, digits(first))
    local merged, i = {}, 1
    for k = 1, first do
        while was_taken_before(entries[i], there[k]) do
            merged[#merged + 1] = entries[i]
            i = i + 1
        end
        merged[#merged + 1] = there[k]
    end
    for k = i, #entries do merged[#merged + 1] = entries[k] end
    return merged
end

local function push_first(key, entries)
    local reversed, n = {}, #entries
    for i = 1, n do reversed[i] = entries[n + 1 - i] end
    push('LPUSH', key, reversed)
end

local function put_first(name, entries, are_back)
    local queue, kind, key = lane_names.parts(name)
    local before = #entries
    local waits = call('EXISTS', P .. 'lane:' .. name) == 1
    if waits and are_back and heads.taken(entries[before]) then entries = merge(P .. 'lane:' .. name, entries) end
    if waits then push_first(P .. 'lane:' .. name, entries) else push('RPUSH', P .. 'lane:' .. name, entries) end
    large.note_lane(queue, entries, 1)
    counters.add(kind, 'returned', before)
    if waits then
        if types.load(kind).own_costs or body.names_cost(entries[1]) or resorts(kind) then lane.gates_are_due(queue, kind, key) end
        return
    end
    put_in_ring(queue, kind, key, now)
end

-- Puts entries that come from elsewhere at the head of their lane, in their order. They are fresh: see heads.
function lane.give_back(name, entries) put_first(name, entries, false) end

-- Takes a type whose ring is empty off the gate at which it waits. The gate is due for the types behind it.
local function leave_gates(queue, kind)
    if call('ZREM', P .. 'held:' .. queue, kind) == 1 then return end
    for _, name in ipairs(call('ZRANGE', P .. 'wake:' .. queue, '0', '-1')) do
        local waiting = P .. 'wait:' .. queue .. '/' .. name
        if call_safe('ZREM', waiting, kind) == 1 then
            if call('EXISTS', waiting) == 0 then
                call('ZREM', P .. 'wake:' .. queue, name)
            else
                lane.gate_is_due(queue, name)
            end
            return
        end
    end
end

local function forget_share(queue, kind, key) call_safe('HDEL', P .. 'credit:' .. queue .. '/' .. kind, key) end

-- Takes a lane that has no job left out of its ring.
function lane.leave_ring(queue, kind, key)
    local ring = P .. 'ring:' .. queue .. '/' .. kind
    call('ZREM', ring, key)
    forget_share(queue, kind, key)
    if call('EXISTS', ring) == 0 then leave_gates(queue, kind) end
end

local function stop_waiting(queue, name, node)
    local waiting, sleep = P .. 'wait:' .. queue .. '/' .. name, P .. 'sleep:' .. queue
    call('ZREM', waiting, node)
    if call('EXISTS', waiting) == 1 then return end
    call('ZREM', sleep, name)
    if call('EXISTS', sleep) == 0 then call('ZREM', P .. 'wake:' .. queue, '*') end
end

-- Takes a lane that has no job left off the gate of a key; node: <type>/<key>. When others wait there, the gate opens in time for the first of them
-- already.
function lane.leave_gate(queue, name, node)
    stop_waiting(queue, name, node)
    forget_share(queue, node:match('^([^/]+)/(.*)$'))
end

-- Wakes a lane that waits at that gate: it goes to its ring. Returns whether it waited there.
local function wake_at(queue, name, kind, key)
    local node = kind .. '/' .. key
    local ticket = call_safe('ZSCORE', P .. 'wait:' .. queue .. '/' .. name, node)
    if type(ticket) ~= 'string' then return false end
    put_in_ring(queue, kind, key, tonumber(ticket))
    stop_waiting(queue, name, node)
    return true
end

-- Wakes a lane at a gate that its type does not ask any more: that gate is due, until a claim has looked.
local function wake_at_former(queue, kind, key)
    if call('ZSCORE', P .. 'ring:' .. queue .. '/' .. kind, key) then return end
    for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'sleep:' .. queue, '-inf', us(now), 'LIMIT', '0', us(FORMER_MOST))) do
        if sub(name, -#key - 1) == '/' .. key and wake_at(queue, name, kind, key) then return end
    end
end

-- Wakes a lane of which a job was cancelled: if it is the first, the next claim meets it. A lane that sleeps goes to its ring.
function lane.wake(queue, kind, key)
    local found = false
    for _, spec in ipairs(types.specs(kind, key)) do
        found = found or wake_at(queue, spec.name, kind, key)
    end
    if not found then wake_at_former(queue, kind, key) end
    lane.gates_are_due(queue, kind, '')
end

local function granted_before(a, b) return a.turn < b.turn or a.turn == b.turn and a.index < b.index end

-- Sorts leased jobs by the order of their grants.
function lane.sort_by_grant(jobs)
    for _, job in ipairs(jobs) do
        local turn, index = job.token:match('^(%d+)%.([%w_-]+)')
        job.turn, job.index = tonumber(turn), heads.index_number(index)
    end
    sort(jobs, granted_before)
end

-- ---- Leased jobs that come back

-- Says what is wrong with the keys that leased jobs need to go back; nil: nothing. A job that a key of another kind keeps from its lane can wait in
-- `later`.
function lane.wrong_back(jobs)
    local wrong = check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
    for _, job in ipairs(jobs) do wrong = wrong or lane.wrong(job.lane) and check.wrong_kind('later', 'zset') or nil end
    return wrong
end

-- Puts jobs that a key keeps from their lane into `later`: promote names that key, and moves them when it is gone. Returns the others.
local function put_off(jobs)
    local able, off = {}, {}
    for _, job in ipairs(jobs) do
        local list = lane.wrong(job.lane) and off or able
        list[#list + 1] = job
    end
    for _, job in ipairs(off) do
        local tag = format('back:%d.%d', now, call('ZCARD', P .. 'later'))
        later_records.put('l ' .. tag .. ' ' .. job.lane .. '\n' .. heads.fresh(job.entry), now)
    end
    counters.add_all(off, 'scheduled')
    return able
end

-- Puts leased jobs of any lanes, {token =, lane =, entry =} each, back to the heads of their lanes, in the order in which they were granted. What
-- they took of gates was released before. Adds the queues whose groups are to be woken to a set.
function lane.put_all_back(jobs, queues)
    local entries, order = {}, {}
    lane.sort_by_grant(jobs)
    for _, job in ipairs(put_off(jobs)) do
        if not entries[job.lane] then
            entries[job.lane] = {}
            order[#order + 1] = job.lane
        end
        local of_lane = entries[job.lane]
        of_lane[#of_lane + 1] = heads.came_back(job.entry, job.token)
    end
    for _, name in ipairs(order) do
        put_first(name, entries[name], true)
        queues[lane_names.parts(name)] = true
    end
end

-- Puts leased jobs to the tails of their lanes.
function lane.put_all_behind(jobs, queues)
    lane.sort_by_grant(jobs)
    local able = put_off(jobs)
    for _, job in ipairs(able) do
        local queue, kind, key = lane_names.parts(job.lane)
        lane.append(queue, kind, key, heads.came_back(job.entry, job.token))
        queues[queue] = true
    end
    counters.add_all(able, 'returned')
end

-- Puts all jobs back, and wakes the groups.
function lane.give_all_back(jobs)
    local queues = {}
    lane.put_all_back(jobs, queues)
    bell.ring_all(queues)
end

return lane
