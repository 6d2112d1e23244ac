-- lane: the jobs of one (queue, type, key) that were looked at and denied, first in first out; and where they wait.
--
--   ring:<queue>/<type>   the type's lanes whose key gates are open: key -> ticket
--   wait:<queue>/<gate>   who waits at a gate: types, by name, at one for all keys; lanes, as <type>/<key>, at one of a key
--   sleep:<queue>         when the gates open at which lanes wait
--   wake:<queue>          when the gates open at which types wait; and `*`, as long as a lane sleeps: not later than the first of sleep
--   held:<queue>          due types that no worker which looked can run
--
-- A ticket is the time of the last service: the least recently served comes first. A lane is not empty exactly when it is in
-- its ring or waits at one gate; a ring is not empty exactly when its type waits at one gate or is held. The gate `-` is
-- always open: there waits who is to be looked at anew, and types that no gate for all keys holds.
--
-- What is written here are the moves that know no gates; claim decides who waits where.
--
-- uses: bell check lease gate
local lane = {}

-- What is wrong with the keys that give_back writes; nil: nothing.
function lane.wrong(name)
    local queue, kind = lease.lane_parts(name)
    return check.wrong_kind('lane:' .. name, 'list') or check.wrong_kind('ring:' .. queue .. '/' .. kind, 'zset')
        or check.wrong_kind('wait:' .. queue .. '/-', 'zset') or check.wrong_kind('wake:' .. queue, 'zset')
        or check.wrong_kind('held:' .. queue, 'zset')
end

-- How many jobs of a type are in lanes, by what was counted.
function lane.parked(kind)
    local s = call('HMGET', P .. 'stats:' .. kind, 'parked', 'returned', 'served')
    return max(0, (tonumber(s[1] or 0) or 0) + (tonumber(s[2] or 0) or 0) - (tonumber(s[3] or 0) or 0))
end

-- Has the next claim look at a type whose ring is not empty.
function lane.look_at(queue, kind, ticket)
    call('ZADD', P .. 'wait:' .. queue .. '/-', us(ticket), kind)
    call('ZADD', P .. 'wake:' .. queue, us(now), '-')
end

-- Puts entries back at the head of their lane, in their order.
function lane.give_back(name, entries)
    local queue, kind, key = lease.lane_parts(name)
    local reversed, ring = {}, P .. 'ring:' .. queue .. '/' .. kind
    local before = call('LLEN', P .. 'lane:' .. name)
    for i = #entries, 1, -1 do reversed[#reversed + 1] = entries[i] end
    push('LPUSH', P .. 'lane:' .. name, reversed)
    lease.count(kind, 'returned', #entries)
    if before > 0 then return end
    call('ZADD', ring, us(now), key)
    if call('ZCARD', ring) == 1 and not call('ZSCORE', P .. 'held:' .. queue, kind) then lane.look_at(queue, kind, now) end
end

local function granted_before(a, b) return a.turn < b.turn or a.turn == b.turn and a.index < b.index end

local function sort_by_grant(jobs)
    for _, job in ipairs(jobs) do
        local turn, index = job.token:match('^(%d+)%.([%w_-]+)')
        job.turn, job.index = tonumber(turn), 0
        for i = 1, #index do job.index = job.index * 128 + index:byte(i) end -- `<` on strings asks the server's locale
    end
    sort(jobs, granted_before)
end

-- A gate has room again: who waits there is due, and the groups that serve them are woken. Jobs are moved in the same call, so
-- this may not fail.
function lane.opened(name)
    for _, queue in ipairs(call_safe('SMEMBERS', P .. 'queues')) do
        local asleep = find(name, '/', 1, true)
        if call_safe('ZADD', P .. (asleep and 'sleep:' or 'wake:') .. queue, 'XX', 'CH', us(now), name) == 1 then
            if asleep then call_safe('ZADD', P .. 'wake:' .. queue, 'LT', us(now), '*') end
            bell.ring(queue)
        end
    end
end

-- A lease ends: gives back what its token says it took of concurrency gates. What holds something else counts nothing.
function lane.release(token)
    for name in lease.gates_of(token) do
        if not check.wrong_kind('gate:' .. name, 'string') then
            gate.release(name)
            lane.opened(name)
        end
    end
end

-- Leased jobs, {token =, lane =, entry =} each, of any lanes, go back to the heads of their lanes, in the order in which they were
-- granted. What they took of gates was released before.
function lane.give_all_back(jobs)
    local entries, order, queues = {}, {}, {}
    sort_by_grant(jobs)
    for _, job in ipairs(jobs) do
        if not entries[job.lane] then
            entries[job.lane] = {}
            order[#order + 1] = job.lane
        end
        local of_lane = entries[job.lane]
        of_lane[#of_lane + 1] = job.entry
    end
    for _, name in ipairs(order) do
        lane.give_back(name, entries[name])
        queues[lease.lane_parts(name)] = true
    end
    for queue in pairs(queues) do bell.ring(queue) end
end

return lane
