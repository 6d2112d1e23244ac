-- claim_start: starting jobs. There is one way: of a number of equal jobs that stand one behind the other, the gates are asked how many may
-- start, and when; those take their slots at all gates and are leased. One job is the case of one.
--
-- Equal are jobs of one lane that cost the same.
--
-- uses: body claim_cache claim_call claim_meet gate
local claim_start = {}

local cache, claim, meet = claim_cache, claim_call, claim_meet

local names_cost = body.names_cost

-- ---- Tokens of this turn: its number and two digits of base 64, in ASCII order. Formatting a number would take longer than all the rest.

local DIGITS = {}
for digit in ('-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'):gmatch('.') do DIGITS[#DIGITS + 1] = digit end
local high, low, token_head
local leases, leased -- of this claim, and how many there are

function claim_start.begin() leases, leased, high, low = claim.leases, 0, 0, 64 end

local AT = 64 -- "@"

-- Leases n jobs of a list, whose slots are taken. rest: of their tokens, behind the index.
local function lease(jobs, first, n, rest)
    for i = first, first + n - 1 do
        if low == 64 then
            high, low = high + 1, 0
            token_head = us(claim.turn) .. '.' .. DIGITS[high]
        end
        low = low + 1
        local entry = jobs[i]
        leases[leased + 1], leases[leased + 2] = token_head .. DIGITS[low] .. rest, entry
        leased = leased + 2
        if byte(entry) == AT and cache.has_lock(entry) then claim.started[#claim.started + 1] = entry end
    end
end

-- The same of jobs that start at that time.
local function lease_at(jobs, first, n, l, at, cost)
    lease(jobs, first, n, cache.slot_text(at, cost) .. l.tail)
    claim.free = claim.free - n
    if at > now then claim.count_far(at) end
end

-- ---- How many

-- How many jobs of this type could be leased, whatever its gates say.
function claim_start.room(s)
    if s.limited then return claim.free end
    return claim.reserved and claim.prefetch or claim.free + claim.prefetch
end

-- About how many slots of e, at most n, may be granted: those that are free at the end of what is granted ahead, or, at a small
-- burst, those that come one after the other until then.
local function slots_ahead(e, n, till)
    local base = e.base
    local free = gate.count(e, till, n, 1)
    if base.in_flight then return free end
    return max(free, floor((till - gate.start(e, 1)) * base.count / base.period) + 1)
end

-- About how many of most jobs of s will start.
function claim_start.likely(s, most)
    local n, gates = min(most, claim_start.room(s)), s.gates
    for i = 1, #gates do n = gates[i].fixed and 0 or min(n, slots_ahead(gates[i], n, claim.till(s))) end
    return n
end

-- How many jobs of a lane are equal to the one at `first`, and with it, at most `most`.
function claim_start.count_equal(s, jobs, first, most)
    if claim.halts then return 1 end -- each of them may have been cancelled
    most = min(most, #jobs - first + 1)
    if not s.limited then return most end
    local n = 0
    while n < most and not names_cost(jobs[first + n]) do n = n + 1 end
    return max(1, n)
end

-- ---- At this moment

local function take(gates, at, n, cost)
    for i = 1, #gates do
        if not gates[i].fixed then gate.take(gates[i], at, n, cost) end -- fixed: a pause that ends within what is granted ahead
    end
end

-- How many of most jobs may start at this moment, by the gates of their key.
local function count_of_key(l, most, cost, lane_ticket)
    local gates, n = l.gates, most
    for i = 1, #gates do
        local e = gates[i]
        if e.fixed or gate.start(e, cost, l.node, lane_ticket) > now then return 0 end
        if n > 1 then n = gate.count(e, now, n, cost) end
    end
    return n
end

-- Takes the slots at all gates of as many of most jobs as may start at this moment; returns how many.
local function take_now(s, l, most, cost, ticket, lane_ticket)
    local n = cache.count_slots(s, most, cost, ticket)
    if n > 0 and #l.gates > 0 then
        n = count_of_key(l, n, cost, lane_ticket)
        if n > 0 then take(l.gates, now, n, cost) end
    end
    if n > 0 then cache.use_slots(n) end
    return n
end

-- ---- One after the other, as the gates open

-- When the next job may start by all of its gates: those of its type, where it waits since ticket, and those of its lane, where that waits
-- since lane_ticket. nil: later than may be granted, and claim.stopped is the gate that opens last.
local function next_start(s, l, cost, ticket, lane_ticket)
    local at, closed = meet.opens(s.gates, cost, s.name, ticket, now)
    local lane_at, lane_closed, till = now, nil, claim.till(s)
    if #l.gates > 0 then lane_at, lane_closed = meet.opens(l.gates, cost, l.node, lane_ticket, now) end
    if lane_at > till then
        claim.stop(cost, lane_closed, lane_at, true)
    elseif at > till then
        claim.stop(cost, closed, at, false)
    else
        return lane_at > at and lane_at or at
    end
end

-- Takes the slots of one job at all gates, from when it may start; returns when. nil: as next_start. follows: one has just started.
local function take_next(s, l, cost, ticket, lane_ticket, follows)
    local gates = s.gates
    if follows and #gates == 1 and #l.gates == 0 and not gates[1].fixed then
        local at = gate.take_next(gates[1], cost, claim.till(s))
        if at then return at end
    end
    local at = next_start(s, l, cost, ticket, lane_ticket)
    if at then
        take(gates, at, 1, cost)
        take(l.gates, at, 1, cost)
    end
    return at
end

-- ---- Starting

local function start_limited(s, l, jobs, first, most, cost, ticket, lane_ticket)
    claim.stopped.gate = nil
    if most < 1 then
        next_start(s, l, cost, ticket, lane_ticket)
        return 0
    end
    local n = take_now(s, l, most, cost, ticket, lane_ticket)
    if n > 0 then lease_at(jobs, first, n, l, now, cost) end
    if n == most then return n end
    cache.take_used()
    while n < most do
        local at = take_next(s, l, cost, ticket, lane_ticket, n > 0)
        if not at then return n end
        lease_at(jobs, first + n, 1, l, at, cost)
        n = n + 1
    end
    return n
end

-- Leases up to most equal jobs of a list, from the one at `first` on, each when all gates let it start: those that may at this moment, then
-- one after the other as the gates open. Returns how many; claim.stopped: the gate that stopped it. most is not more than room(); where that
-- is 0, the gates are only asked. l nil: of a type without limits.
function claim_start.jobs(s, l, jobs, first, most, cost, ticket, lane_ticket)
    if s.limited then return start_limited(s, l, jobs, first, most, cost, ticket, lane_ticket) end
    claim.stopped.gate = nil
    lease(jobs, first, most, l and l.tail or '/' .. s.lane_head)
    local ahead = min(most, claim.prefetch)
    claim.prefetch, claim.free = claim.prefetch - ahead, claim.free - (most - ahead)
    return most
end

return claim_start
