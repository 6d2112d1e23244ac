-- claim_commit: writes what was decided about jobs. Every key was read or checked before. What only counts must not fail.
--
-- uses: cancelled check claim_call counters ends gate large longest types
local claim_commit = {}

local claim = claim_call

local MARK_US = 1000000 -- rates are measured over about a second

-- Says what is wrong with the keys that write() writes and that nothing has read so far; nil: nothing.
function claim_commit.wrong_keys()
    local wrong = #claim.dead > 0 and check.wrong_kind('dead', 'zset') or nil
    for _, job in ipairs(claim.halted) do
        wrong = wrong or job.batch and check.wrong_kind('aside:' .. job.batch, 'list')
    end
    return wrong
end

-- Makes the first write, to a key that nothing has read. Until it has succeeded, the claim can still fail.
function claim_commit.write_leases(worker, leases) push('HSET', P .. 'active:' .. worker, leases) end

-- Appends the entries of a list, from `first` on, to key; returns how many it has then.
local function append(key, list, first)
    local length
    for i = first, #list, 4000 do length = call('RPUSH', key, unpack(list, i, min(i + 3999, #list))) end
    return length
end

-- Writes a lane. ended: the keys of lanes that have no job left.
local function write_lane(l, ended)
    local lane, more = P .. 'lane:' .. l.name, l.parked[l.parked_next]
    if more then
        local length = append(lane, l.parked, l.parked_next)
        large.note_lane(l.s.queue, l.parked, l.parked_next)
        if length >= longest.LEAST and l.key ~= '' then longest.note(l.s.queue, l.s.name, l.key, length, #l.parked - l.parked_next + 1) end
    end
    if l.read_at == 1 then return end
    if l.whole and l.read_at > l.fetched and not more then
        ended[#ended + 1] = lane
    else
        call('LTRIM', lane, digits(l.read_at - 1), '-1')
    end
end

local function write_lanes()
    local ended = {}
    for i = 1, #claim.lanes do write_lane(claim.lanes[i], ended) end
    for i = 1, #ended, 4000 do call('DEL', unpack(ended, i, min(i + 3999, #ended))) end
end

local function mark_rate(name)
    local stats = P .. 'stats:' .. name
    local m = call_safe('HMGET', stats, 'mark_us', 'mark', 'pulled', 'served', 'unstarted')
    local at = tonumber(m[1] or 0) or 0
    local started = counters.number(m[3]) + counters.number(m[4]) - counters.number(m[5])
    if now - at >= MARK_US or now < at then
        call_safe('HSET', stats, 'last_us', us(at), 'last', m[2] or 0, 'mark_us', us(now), 'mark', started)
    end
end

-- Counts jobs of a type that may be a new one.
function claim_commit.count_new(name, what, n)
    if n > 0 and counters.add(name, what, n) == n then call_safe('HSETNX', P .. 'types', name, '') end
end

local function count_moves(s)
    claim_commit.count_new(s.name, 'pulled', s.pulled)
    claim_commit.count_new(s.name, 'parked', s.parked)
    if s.served > 0 then counters.add(s.name, 'served', s.served) end
    for what, n in pairs(s.counts) do counters.add(s.name, what, n) end
    if s.pulled + s.served == 0 then return end
    if claim.has_option('m') then mark_rate(s.name) end
    if s.type.text ~= '' then
        claim.limits[#claim.limits + 1] = s.name
        claim.limits[#claim.limits + 1] = s.type.text
    end
end

-- Notes what other scripts must know about a type; it is written once.
local function note(s)
    local t = s.type
    if s.own_costs and not t.own_costs then types.note(s.name, 'costs', 'own') end
    if s.has_keys and t.lanes ~= t.path and t.lanes ~= '*' then types.note(s.name, 'lanes', t.lanes and '*' or t.path) end
end

local function write_dead()
    for i, d in ipairs(claim.dead) do
        ends.bury(format('%s:%d.d%d', claim.worker, claim.turn, i), d.lane, d.reason, d.entry)
    end
end

-- Ends jobs that were cancelled, and sets aside those of paused batches.
local function write_halted()
    if #claim.halted == 0 then return end
    local aside, ended = {}, {}
    for _, job in ipairs(claim.halted) do
        if job.batch then
            aside[job.batch] = aside[job.batch] or {}
            aside[job.batch][#aside[job.batch] + 1] = job.lane .. '\n' .. job.entry
        else
            ended[#ended + 1] = job.entry
        end
    end
    for name, records in pairs(aside) do push('RPUSH', P .. 'aside:' .. name, records) end
    if #ended > 0 then cancelled.finish(ended) end
end

function claim_commit.write()
    write_dead()
    write_halted()
    for i = 1, #claim.started do ends.started(claim.started[i]) end
    write_lanes()
    gate.save()
    for queue, n in pairs(claim.used) do
        if n > 0 then call('LTRIM', P .. 'queue:' .. queue, digits(n), '-1') end
    end
    for _, queue in ipairs(claim.emptied) do large.forget(queue) end
    for _, s in ipairs(claim.order) do
        count_moves(s)
        note(s)
    end
end

return claim_commit
