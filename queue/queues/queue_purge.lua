-- queue_purge: one page of the jobs of a queue and of its lanes: counted, or removed. What is removed has ended as cancelled.
--
-- A walk keeps a stack of places, each with how far it has been read ('' at first). A page goes on with the one on top; places that it
-- names come before the rest of it. Jobs of one type stand in a queue among others: those are left to job_act.
--
-- ARGV: now, queue ("<queue>!": lanes of jobs that are to run alone), "count" or "remove", type ('': all), most (jobs of this page, 1 to
--       1000), then what `next` of the page before says: the stack, its top first, of
--       place: queue, rings (names those that are there), ring:<type>, sleep; from
-- role: operator
-- reply: JSON: {"next": [place, from, ...], "waiting", "parked": jobs that were counted or removed}
--        {"missing": true} when there is no such queue
-- uses: bell body cancelled check counters lane lane_names paused sign slices time_budget

local SHARE = 8    -- a lane takes Redis as long as so many of its jobs
local AT_ONCE = 50 -- jobs that end, and then the clock is asked
local LATE_US = 1500 -- when no more end: their types are to be counted yet

local queue, removes, kind, left      -- of one call; left: how many jobs this page may still take
local jobs, places, load
local fault -- the first key of another kind: nothing behind it is looked at

-- True where a key is there and of another kind than that.
local function is_wrong(key, kind_of_key)
    fault = fault or check.wrong_kind(key, kind_of_key)
    return fault ~= nil
end

local function scan(command, key, most, from)
    local page = call(command, P .. key, from == '' and '0' or from, 'COUNT', us(most))
    return page[1] ~= '0' and page[1] or '', page[2]
end

-- Counts n jobs of a type as ended, by what they were counted as where they stood.
local function count_ended(name, n, names)
    for _, what in ipairs(names) do counters.add(name, what, n) end
    counters.add(name, 'cancelled', n)
end

-- ---- The queue

local DROPPED = {'dropped'}

-- Adds the types of those that have ended to counts; returns whether there are more.
local function remove_some(key, counts)
    local entries, ended = slices.read('LRANGE', key, 0, min(left, AT_ONCE), load), {}
    for _, entry in ipairs(entries) do
        entry = sign.read(entry)
        local name = body.type(entry)
        if name then ended[#ended + 1], counts[name] = entry, (counts[name] or 0) + 1 end
    end
    call('LTRIM', key, digits(#entries), '-1')
    cancelled.finish(ended)
    jobs, left = jobs + #entries, left - #entries
    return call('EXISTS', key) == 1
end

-- True when this page may take no more.
local function is_over() return left < 1 or slices.is_full(load) or time_budget.is_late(LATE_US) end

local function remove_from_queue(key)
    local counts, more = {}, nil
    repeat more = remove_some(key, counts) until not more or is_over()
    for name, n in pairs(counts) do count_ended(name, n, DROPPED) end
    return more and '0' or ''
end

-- From the tail, so that none is passed over while others leave at the head; from: how many were seen.
local function look_at_queue(key, from)
    from = tonumber(from) or 0
    local entries, all = slices.last(key, left, load, from)
    for _, entry in ipairs(entries) do
        if body.type(entry) == kind then jobs = jobs + 1 end
    end
    return all and '' or us(from + #entries)
end

local function of_queue(from)
    local key = P .. 'queue:' .. queue
    if kind ~= '' then return removes and '' or look_at_queue(key, from) end
    if removes then return remove_from_queue(key) end
    jobs = call('LLEN', key)
    return ''
end

-- ---- Lanes

local PARKED = {'served', 'back', 'unstarted'}

-- Takes some of a lane's first jobs; returns whether it has none left.
local function take_some(name)
    local entries = slices.read('LRANGE', P .. 'lane:' .. name, 0, min(left, AT_ONCE), load)
    local _, of_type = lane_names.parts(name)
    left = left - #entries
    call('LTRIM', P .. 'lane:' .. name, digits(#entries), '-1')
    count_ended(of_type, #entries, PARKED)
    cancelled.finish(entries)
    jobs = jobs + #entries
    return call('EXISTS', P .. 'lane:' .. name) == 0
end

-- Counts a lane, or takes what this page may; returns whether it is gone.
local function visit(name)
    if is_wrong('lane:' .. name, 'list') then return false end
    left = left - SHARE
    if removes then
        left = max(left, 1)
        local gone
        repeat gone = take_some(name) until gone or is_over()
        return gone
    end
    jobs = jobs + call('LLEN', P .. 'lane:' .. name)
    return false
end

local function of_rings(from)
    local rest, names = scan('HSCAN', 'types', left, from)
    for i = 1, #names, 2 do
        local wanted = kind == '' or kind == names[i]
        if wanted and call('EXISTS', P .. 'ring:' .. queue .. '/' .. names[i]) == 1 then places[#places + 1] = 'ring:' .. names[i] end
    end
    return rest
end

local function of_ring(from, name)
    local ring = 'ring:' .. queue .. '/' .. name
    if not removes then
        local rest, keys = scan('ZSCAN', ring, ceil(left / SHARE), from)
        for i = 1, #keys, 2 do visit(queue .. '/' .. name .. '/' .. keys[i]) end
        return rest
    end
    for _, key in ipairs(call('ZRANGE', P .. ring, '0', us(ceil(left / SHARE) - 1))) do
        if not visit(queue .. '/' .. name .. '/' .. key) then break end
        lane.leave_ring(queue, name, key)
        if is_over() then break end
    end
    if call('EXISTS', P .. ring) == 0 then return '' end
    lane.gates_are_due(queue, name, '')
    return '0'
end

-- Goes through the lanes that wait at the gate of a key; returns whether this page has come to their end.
local function of_gate(gate_name)
    if is_wrong('wait:' .. queue .. '/' .. gate_name, 'zset') then return false end
    for _, node in ipairs(call('ZRANGE', P .. 'wait:' .. queue .. '/' .. gate_name, '0', '-1')) do
        if kind == '' or node:match('^[^/]+') == kind then
            if removes and jobs > 0 and is_over() then return false end
            local gone = visit(queue .. '/' .. node)
            if gone then
                lane.leave_gate(queue, gate_name, node)
            elseif removes then
                lane.gate_is_due(queue, gate_name)
                return false
            end
        end
    end
    return true
end

local function of_sleep(from)
    local rest, gates = scan('ZSCAN', 'sleep:' .. queue, ceil(left / SHARE), from)
    for i = 1, #gates, 2 do
        -- The next call looks at the same page: the jobs that are gone are not in it any more.
        if not of_gate(gates[i]) and removes then return from == '' and '0' or from end
    end
    return rest
end

-- ----

local ways = {queue = of_queue, rings = of_rings, ring = of_ring, sleep = of_sleep}

local function wrong_keys(way, name)
    local wrong = check.wrong_kind('cancelled', 'hash') or check.wrong_kind('halted', 'hash') or check.wrong_kind('queues', 'set')
        or check.wrong_kind('queue:' .. queue, 'list')
        or check.wrong_kind('wake:' .. queue, 'zset') or check.wrong_kind('sleep:' .. queue, 'zset')
        or check.wrong_kind('held:' .. queue, 'zset') or check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
        or sign.wrong()
    if way == 'ring' then wrong = wrong or check.wrong_kind('ring:' .. queue .. '/' .. name, 'zset') end
    return wrong
end

-- Makes the stack behind a page: what the place names, the rest of it, and those below it.
local function next_places(words, way, rest)
    local stack = {}
    for i = #places, 1, -1 do stack[#stack + 1], stack[#stack + 2] = places[i], '' end
    if rest ~= '' then stack[#stack + 1], stack[#stack + 2] = way, rest end
    for i = 8, #words do stack[#stack + 1] = words[i] end
    return stack[1] and stack
end

-- Places are gone through in the order in which jobs move.
local FIRST = {'queue', '', 'rings', '', 'sleep', ''}

local function queue_purge(ARGV)
    for i = 1, #ARGV == 5 and #FIRST or 0 do ARGV[5 + i] = FIRST[i] end
    local most, way, name = tonumber(ARGV[5]), (ARGV[6] or ''):match('^(%a+):?(.*)$')
    queue, removes, kind, left = ARGV[2], ARGV[3] == 'remove', ARGV[4], most
    if #ARGV < 7 or #ARGV % 2 == 0 or not (lane_names.is_queue(queue) and (kind == '' or is_name(kind)) and is_whole(most, 1) and ways[way or ''])
        or most > 1000 or not removes and ARGV[3] ~= 'count' then
        return refuse('queue_purge: wants now, queue, count or remove, type, most from 1 to 1000, place, from, ...')
    end
    local wrong = wrong_keys(way, name)
    if wrong then return check.refuse_key(wrong) end
    if not paused.is_known(lane_names.usual_queue(queue)) then return answer{missing = true} end
    jobs, places, load, fault = 0, {}, slices.deep_load(), nil
    local rest = ways[way](ARGV[7], name)
    if fault and not (removes and jobs > 0) then return check.refuse_key(fault) end -- else the next page begins there
    if removes and jobs > 0 then bell.ring(queue) end
    return answer{next = next_places(ARGV, ARGV[6], rest), waiting = us(way == 'queue' and jobs or 0), parked = us(way ~= 'queue' and jobs or 0)}
end

return queue_purge
