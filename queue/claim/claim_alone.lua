-- claim_alone: suspects, jobs whose worker died while they ran. One of them may have killed it. So a group of them (claim_group) starts in a
-- worker that has nothing else in flight, and that worker gets nothing more until they have ended. They wait in the lanes of "<queue>!", a queue without a
-- list, which only this file serves. Other workers go on meanwhile.
--
--   alone   sorted set: these queues, as long as they have jobs -> 0; and workers that run suspects, or wait until they can -> since
--           when, us
--
-- A worker that may be alone (option a) and finds a suspect due takes a seat among these workers. It gets nothing more until all that it
-- has in flight, in other partitions too (option b), has ended. Then it gets the suspects whose gates let them start; where none does, these are held for them. At most a quarter of the workers,
-- but at least one, have a seat. A worker that has nothing in flight and finds nothing else to do may also run suspects: half of them, but at least two.
--
-- uses: check claim_call claim_group claim_meet claim_held claim_lanes
local claim_alone = {}

local claim, group, meet, held, lanes = claim_call, claim_group, claim_meet, claim_held, claim_lanes

local SHARE = 4          -- one worker of so many has a seat, and at least one
local IDLE_SHARE = 2     -- the same where workers find nothing else, and at least two: one may be dead, and not yet known to be
local SOON_US = 1000000  -- a worker stays alone for a gate that opens within this time
local ASLEEP_MOST = 100  -- gates that are checked again although only the end of a job opens them

local waiting -- queue -> the name of its queue of suspects; false: there is none
local has_seat

function claim_alone.begin()
    waiting, has_seat = false, false
    if not claim.suspects then return end
    local names = {claim.worker}
    for i, queue in ipairs(claim.open) do names[i + 1] = queue .. '!' end
    local scores = call_safe('ZMSCORE', P .. 'alone', unpack(names))
    if scores.err then return claim.note_fault(check.wrong_kind('alone', 'zset')) end
    has_seat = scores[1] and true
    for i, queue in ipairs(claim.open) do
        if scores[i + 1] then
            waiting = waiting or {}
            waiting[queue] = names[i + 1]
        end
    end
end

-- ---- Is there any to run?

-- Returns when the first gate opens at which a type or lane waits; nil: none does. ask: call, or call_safe where the leases are written already.
local function first_opening(name, ask) return tonumber(ask('ZRANGE', P .. 'wake:' .. name, '0', '0', 'WITHSCORES')[2] or nil) end

-- True when a gate is due. at == huge: only the end of a job opens that gate, at any time.
local function is_due(name)
    local at = first_opening(name, call)
    if at and (at <= now + SOON_US or has_seat and at == huge) or held.is_any_mine(name) then return true end
    if not at and call('EXISTS', P .. 'held:' .. name) == 0 then call('ZREM', P .. 'alone', name) end
    return false
end

-- True when a suspect is due in one of the queues, up to the first that has jobs of its own: a worker with a seat looks at all.
local function is_any_due()
    for _, queue in ipairs(waiting and claim.queues or {}) do
        if waiting[queue] and is_due(waiting[queue]) then return true end
        if not has_seat and call('EXISTS', P .. 'queue:' .. queue) == 1 then return false end
    end
    return false
end

-- ---- Seats

local function count_seats()
    local taken = 0
    for _, worker in ipairs(call('ZRANGEBYSCORE', P .. 'alone', '1', '+inf')) do
        if call('ZSCORE', P .. 'workers', worker) then taken = taken + 1 else call('ZREM', P .. 'alone', worker) end
    end
    return taken, call('ZCARD', P .. 'workers')
end

-- Takes a seat, if one is free: one worker of `share` has one, and at least `least` workers. Returns whether it has one.
local function take_seat(share, least)
    if has_seat then return true end
    local taken, workers = count_seats()
    has_seat = taken < max(least, floor(workers / share))
    if has_seat then call('ZADD', P .. 'alone', us(now), claim.worker) end
    return has_seat
end

local function leave_seat()
    if has_seat then call('ZREM', P .. 'alone', claim.worker) end
    has_seat = false
end

-- ---- Serving them

local function is_idle() return not claim.has_option('b') and call('HLEN', P .. 'active:' .. claim.worker) == 1 end -- "@"

-- Makes gates due that only the end of a job opens, so that they stay held.
local function make_closed_due(name)
    local sleep, wake = P .. 'sleep:' .. name, P .. 'wake:' .. name
    for _, list in ipairs({sleep, wake}) do
        for _, gate_name in ipairs(call('ZRANGEBYSCORE', list, '+inf', '+inf', 'LIMIT', 0, ASLEEP_MOST)) do
            call('ZADD', list, us(now), gate_name)
            if list == sleep then call('ZADD', wake, us(now), '*') end
        end
    end
end

-- Leases a group of suspects whose gates let them start. keeps: where there is none, the gates are held for one. Returns whether there was one.
local function serve_group(keeps)
    claim.serves_alone = true
    local free, prefetch, reserved = claim.free, claim.prefetch, claim.reserved
    claim.prefetch, claim.reserved, claim.keeps = 0, false, keeps
    group.begin()
    for _, queue in ipairs(claim.queues) do
        local name = claim.free > 0 and waiting[queue]
        if name then
            claim.open_queue(name)
            if keeps then make_closed_due(name) end
            held.take_back_all(name)
            lanes.serve(name, lanes.due(name))
        end
    end
    claim.free, claim.prefetch, claim.reserved, claim.keeps, claim.starved = free, prefetch, reserved, false, false
    return group.finish() > 0
end

-- Gives the worker nothing else.
local function be_alone() claim.alone, claim.free, claim.prefetch = true, 0, 0 end

-- Serves suspects before anything else.
function claim_alone.before()
    if not (waiting or has_seat) then return end
    if not (claim.has_option('a') and is_any_due() and take_seat(SHARE, 1)) then return leave_seat() end
    if claim.free > 0 and is_idle() and not serve_group(true) and not is_any_due() then return leave_seat() end
    be_alone()
end

-- Serves suspects when all else has been served.
function claim_alone.after()
    if not waiting or claim.alone or claim.free < 1 or #claim.leases > 0 then return end
    if not (is_idle() and is_any_due() and take_seat(IDLE_SHARE, 2)) then return end
    if serve_group(false) then be_alone() else leave_seat() end
end

-- True when a suspect is due again at once, after this claim.
function claim_alone.is_more()
    for _, name in pairs(waiting or {}) do
        if #claim.leases == 0 and (first_opening(name, call_safe) or huge) <= now + claim.ahead then return true end
    end
    return false
end

-- Returns when the first gate opens that is not due yet.
function claim_alone.next_time()
    local next_at = huge
    for _, name in pairs(waiting or {}) do
        local at = first_opening(name, call_safe)
        if at and at > now + claim.ahead_at_first then next_at = min(next_at, at) end
    end
    return next_at
end

return claim_alone
