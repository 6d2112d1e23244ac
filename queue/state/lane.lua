-- lane: the jobs of one (queue, type, key) that were read and could not start, first in first out; and where they wait.
--
--   ring:<queue>/<type>   the type's lanes whose key gates are open: key -> ticket
--   wait:<queue>/<gate>   what waits at a gate: types, by name, at one for all keys; lanes, as <type>/<key>, at one of a key
--   sleep:<queue>         when the gates open at which lanes wait
--   wake:<queue>          when the gates open at which types wait; and `*`, as long as a lane sleeps: not later than the first of sleep
--   held:<queue>          due types that no worker which looked can run
--   at:<gate>             queues that have a type or lane waiting at a gate, to be woken when something makes room there: every one where
--                         only that opens the gate; where time does, too, see may_be_woken in claim_wait. Lines of callers (line.lua)
--                         join as there is room. Who is woken leaves
--   opened                gates that have room while not all of their queues are woken yet. In these two <limit>#* stands for all gates that a
--                         limit can have for all keys, as somebody has changed it, and * for all of all limits
--
-- A ticket is the time of the last service: the least recently served comes first. A lane is not empty exactly when it is in
-- its ring or waits at one gate; a ring is not empty exactly when its type waits at one gate or is held. The gate `-` is
-- always open: types wait there that must be checked again, and types without a gate for all keys.
--
-- These functions move jobs without asking gates; claim decides what waits where.
--
-- uses: bell body check gate later_records lease line longest registry slices types
local lane = {}

-- Says what is wrong with the keys that give_back writes; nil: nothing.
function lane.wrong(name)
    local queue, kind = lease.lane_parts(name)
    return lease.is_alone(name) and check.wrong_kind('alone', 'zset') or check.wrong_kind('lane:' .. name, 'list') or check.wrong_kind('ring:' .. queue .. '/' .. kind, 'zset')
        or check.wrong_kind('wait:' .. queue .. '/-', 'zset') or check.wrong_kind('wake:' .. queue, 'zset')
        or check.wrong_kind('sleep:' .. queue, 'zset') or check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
        or check.wrong_kind('held:' .. queue, 'zset')
end

-- Returns how many jobs of a type are in lanes, by these counters.
function lane.parked_by(parked, returned, served)
    return max(0, lease.counted(parked) + lease.counted(returned) - lease.counted(served))
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
    if length == 1 then put_in_ring(queue, kind, key, now) end
    if length >= longest.LEAST and key ~= '' then longest.note(queue, kind, key, length, 1) end
end

local function was_taken_before(a, b)
    local slot, index = lease.taken(a)
    local slot_b, index_b = lease.taken(b)
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

local function put_first(name, entries, are_back)
    local queue, kind, key = lease.lane_parts(name)
    local reversed, before = {}, #entries
    local waits = call('EXISTS', P .. 'lane:' .. name) == 1
    if waits and are_back and lease.taken(entries[before]) then entries = merge(P .. 'lane:' .. name, entries) end
    for i = #entries, 1, -1 do reversed[#reversed + 1] = entries[i] end
    push('LPUSH', P .. 'lane:' .. name, reversed)
    lease.count(kind, 'returned', before)
    if waits then
        if types.load(kind).own_costs or body.names_cost(entries[1]) or resorts(kind) then lane.gates_are_due(queue, kind, key) end
        return
    end
    put_in_ring(queue, kind, key, now)
end

-- Puts entries that come from elsewhere at the head of their lane, in their order.
function lane.give_back(name, entries)
    local fresh = {}
    for i, entry in ipairs(entries) do fresh[i] = lease.fresh(entry) end
    put_first(name, fresh, false)
end

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

-- Wakes a lane of which a job was cancelled: if it is the first, the next claim meets it. A lane that sleeps goes to its ring.
function lane.wake(queue, kind, key)
    local node = kind .. '/' .. key
    for _, spec in ipairs(types.specs(kind, key)) do
        local ticket = call('ZSCORE', P .. 'wait:' .. queue .. '/' .. spec.name, node)
        if ticket then
            put_in_ring(queue, kind, key, tonumber(ticket))
            stop_waiting(queue, spec.name, node)
            break
        end
    end
    lane.gates_are_due(queue, kind, '')
end

local function granted_before(a, b) return a.turn < b.turn or a.turn == b.turn and a.index < b.index end

-- Sorts leased jobs by the order of their grants.
function lane.sort_by_grant(jobs)
    for _, job in ipairs(jobs) do
        local turn, index = job.token:match('^(%d+)%.([%w_-]+)')
        job.turn, job.index = tonumber(turn), lease.index_number(index)
    end
    sort(jobs, granted_before)
end

-- ---- Gates that open because something makes room there. Jobs are moved in the same call, so nothing here may fail.

local WOKEN_MOST = 300  -- queues woken in one call, about 5 us each, 8 where each has a group of workers of its own,
local WAKE_US = 1000    -- less where those behind the first ones take so long;
local AT_ONCE = 25      -- so many at once,
local SPARE = 3         -- and so many more than slots that jobs give back: some have nothing that fits, or nobody who serves them,
local SPARE_ENDED = 20  -- at a gate that opens as jobs end, and for no other reason;
local GATES_SHARE = 20  -- and gates of one that count as one more;
local TIMES_SHARE = 2   -- where it is asked for all gates of a limit, it counts as so many
local AT_MS = 3600000   -- a queue is listed for so long at a gate of a key that opens by time: its own wake-up comes before

local opened = {} -- gates, in this call, and for each how many queues are enough to take its slots

local function forget_opened() opened = {} end

-- Lists a queue of which a type or lane waits at a gate until something makes room there. by_time: it also opens without that, but later. False:
-- its key is of a wrong kind.
function lane.wait_at(queue, name, by_time)
    local at = P .. 'at:' .. name
    if type(call_safe('SADD', at, queue)) ~= 'number' then return false end
    if VIRTUAL or not find(name, '/', 1, true) then return true end
    if by_time then call('PEXPIRE', at, AT_MS) else call('PERSIST', at) end
    return true
end

local FEW = 8 -- queues

local few -- in this call: all queues, where they are few; else none

local function forget_few() few = nil end

local function few_queues()
    if few then return few end
    at_next_call(forget_few)
    local n = call_safe('SCARD', P .. 'queues')
    few = type(n) == 'number' and n <= FEW and call('SMEMBERS', P .. 'queues') or {}
    return few
end

-- Lists who may wait at a gate where a job of the queue gives something back, as nobody has listed it: where there are few queues, any may wait.
function lane.list_at(queue, name)
    local queues = few_queues()
    if #queues > 0 then call_safe('SADD', P .. 'at:' .. name, unpack(queues)) end
    lane.wait_at(queue, name, true)
end

-- Lists the lines of callers that wait at a gate, to be woken too. Returns how many there are.
local function list_lines(name)
    local lines = line.at(name)
    for i = 1, #lines, 4000 do call_safe('SADD', P .. 'at:' .. name, unpack(lines, i, min(i + 3999, #lines))) end
    return #lines
end

local has_lines       -- in this call: does any caller stand in line?
local with_lines = {} -- gates at which some do

local function forget_lines() has_lines, with_lines = nil, {} end

-- Lists the lines at a gate where a job gives something back.
function lane.list_lines_at(name)
    if has_lines == nil then
        at_next_call(forget_lines)
        has_lines = call('EXISTS', P .. 'lines') == 1
    end
    if has_lines and list_lines(name) > 0 then with_lines[name] = true end
end

local function open(name, spare)
    if #opened == 0 then at_next_call(forget_opened) end
    if not opened[name] then opened[#opened + 1] = name end
    opened[name] = (opened[name] or spare) + 1
end

-- Notes that a gate has room again: lane.wake_opened wakes what waits there.
function lane.opened(name) open(name, SPARE) end

local PLACES = 8 -- rules of one limit: gates <limit>#0 to #7
local ALL = '*'

-- Returns the gates of a limit and when they are due, as ZADD takes them, where a name stands for all gates; nil: it does not.
local function times_of(name)
    local limit, times = match(name, '^(.+#)%*$'), {}
    for i = 0, limit and PLACES or -1 do times[#times + 1], times[#times + 2] = us(now), limit .. (i < PLACES and i or 'pause') end
    return limit and times
end

-- Returns how many gates of the queue are due now.
local function wake_at(queue, name, times)
    local wake, asleep, woken = P .. 'wake:' .. queue, find(name, '/', 1, true), nil
    if name == ALL then
        woken = call_safe('ZUNIONSTORE', wake, '1', wake, 'WEIGHTS', '0')
    elseif times then
        woken = call_safe('ZADD', wake, 'XX', 'CH', 'LT', unpack(times))
    else
        woken = call_safe('ZADD', P .. (asleep and 'sleep:' or 'wake:') .. queue, 'XX', 'CH', us(now), name)
    end
    if type(woken) ~= 'number' then return 0 end
    if asleep and woken > 0 then call_safe('ZADD', wake, 'LT', us(now), '*') end
    return woken
end

-- Notes that a gate may open now for waiters of any queue, as somebody has changed a limit: lane.wake_opened sees to it.
function lane.opened_everywhere(name)
    call_safe('SUNIONSTORE', P .. 'at:' .. name, P .. 'at:' .. name, P .. 'queues')
    list_lines(name)
    call_safe('SADD', P .. 'opened', name)
end

local LINE = 33 -- "!"

-- Wakes a line that is listed at a gate, or leaves it there, where so much was done before that nothing is left to do. Returns how much it was.
local function wake_line(name, member, left)
    local looked_at, more = 0, left < 1
    if not more then looked_at, more = line.wake(member) end
    if more then call_safe('SADD', P .. 'at:' .. name, member) end
    return looked_at
end

-- Takes at most `most` queues that wait at a gate off its list, chosen at random.
local function take_waiting(name, most)
    local queues = call_safe('SPOP', P .. 'at:' .. name, digits(most))
    return queues.err and {} or queues
end

-- Makes due what waits at the gates that were opened, and wakes the groups that serve it. Of many queues a job wakes a few: who serves several
-- finds there what is left for the others. All that is too much for one call is left to the next one that opens a gate, and to heartbeats
-- (rest). Returns whether something is left.
function lane.wake_opened(rest)
    if #opened == 0 and not rest then return false end
    local of_jobs = #opened
    local left = call_safe('SPOP', P .. 'opened', digits(WOKEN_MOST))
    for _, name in ipairs(left.err and {} or left) do lane.opened(name) end
    local woken, any, most, more, late_us = {}, false, WOKEN_MOST, false, nil
    for i, name in ipairs(opened) do
        local times, asked, queues = times_of(name), nil, nil
        local enough = not (rest or i > of_jobs or with_lines[name]) and opened[name] or huge
        local others_wait = enough > SPARE_ENDED -- for that alone: the gate opens for no other reason
        repeat
            asked = max(0, min(most, AT_ONCE, enough))
            queues = asked > 0 and take_waiting(name, asked) or {}
            for _, queue in ipairs(queues) do
                if byte(queue) == LINE then
                    most = most - wake_line(name, queue, most)
                else
                    local gates = wake_at(queue, name, times)
                    if gates > 0 then woken[queue], any, enough = true, true, enough - 1 end
                    most = most - (times and TIMES_SHARE or 1) - floor(gates / GATES_SHARE)
                end
            end
            if #queues == asked and asked > 0 then -- there are many
                late_us = late_us or passed_us() + WAKE_US
                if passed_us() > late_us then most = 0 end
            end
        until #queues < asked or most < 1 or enough < 1
        if (most < 1 or enough < 1 and others_wait) and call('EXISTS', P .. 'at:' .. name) == 1 then
            call_safe('SADD', P .. 'opened', name)
            more = true
        end
    end
    if any then bell.ring_all(woken) end
    return more
end

-- Gives back what the token of a lease that ends took of concurrency gates. A key of a wrong kind counts nothing.
function lane.release(token)
    for name in lease.gates_of(token) do
        if not check.wrong_kind('gate:' .. name, 'string') then
            gate.release(name)
            open(name, SPARE_ENDED)
        end
    end
end

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
        later_records.put('l ' .. tag .. ' ' .. job.lane .. '\n' .. lease.fresh(job.entry), now)
    end
    lease.count_all(off, 'scheduled')
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
        of_lane[#of_lane + 1] = lease.came_back(job.entry, job.token)
    end
    for _, name in ipairs(order) do
        put_first(name, entries[name], true)
        queues[lease.lane_parts(name)] = true
    end
end

-- Puts leased jobs to the tails of their lanes.
function lane.put_all_behind(jobs, queues)
    lane.sort_by_grant(jobs)
    local able = put_off(jobs)
    for _, job in ipairs(able) do
        local queue, kind, key = lease.lane_parts(job.lane)
        lane.append(queue, kind, key, lease.came_back(job.entry, job.token))
        queues[queue] = true
    end
    lease.count_all(able, 'returned')
end

-- Puts all jobs back, and wakes the groups.
function lane.give_all_back(jobs)
    local queues = {}
    lane.put_all_back(jobs, queues)
    bell.ring_all(queues)
end

return lane
