-- claim_start: starting jobs. There is one way: of a number of equal jobs that stand one behind the other, the gates are asked how many may
-- start, and when; those take their slots at all gates and are leased. One job is the case of one.
--
-- Equal are jobs of one lane that cost the same.
--
-- uses: body claim_cache claim_call claim_causes claim_meet gate stamp
local claim_start = {}

local cache, causes, claim, meet = claim_cache, claim_causes, claim_call, claim_meet

local names_cost = body.names_cost

-- ---- Tokens of this turn: its number and two digits of base 64, in ASCII order. Formatting a number would take longer than all the rest.

local DIGITS = stamp.DIGITS
local high, low, token_head
local leases, leased   -- of this claim, and how many words these are
local runs, run_behind -- how many leases follow one another whose tokens differ in the index alone; what stands behind that in the last run

function claim_start.begin()
    leases, leased, high, low = claim.leases, 0, 0, 64
    runs, run_behind = {}, nil
end

-- Makes the head of the n-th token of a turn, one of the first 64.
function claim_start.token(turn, n) return turn .. '.' .. DIGITS[1] .. DIGITS[n] end

-- Notes the locks that jobs of a list hold until they start.
local function note_locks(jobs, first, last)
    local plain = cache.plain
    for i = first, last do
        local entry = jobs[i]
        if sub(entry, 1, #plain) ~= plain then
            if cache.has_lock(entry) then claim.started[#claim.started + 1] = entry end
            plain = cache.plain
        end
    end
end

-- Adds to the leases jobs of a list, as many as there are indices left with this high digit. behind: of their tokens. Returns the last one.
local function lease_some(jobs, first, last, behind)
    if low == 64 then
        high, low = high + 1, 0
        token_head = us(claim.turn) .. '.' .. DIGITS[high]
    end
    local list, digit_of, head, at, shift = leases, DIGITS, token_head, leased, first - low - 1
    last = min(last, shift + 64)
    for k = low + 1, last - shift do
        at = at + 2
        list[at - 1] = head .. digit_of[k] .. behind
        list[at] = jobs[shift + k]
    end
    leased, low = at, last - shift
    return last
end

-- Leases n jobs of a list whose slots are taken. slot and tail stand in their tokens behind the index.
local function lease(jobs, first, n, slot, tail)
    local behind, last, next_one = slot .. tail, first + n - 1, first
    while next_one <= last do next_one = lease_some(jobs, next_one, last, behind) + 1 end
    local same, same_last = jobs.same or huge, jobs.same_last or 0 -- those hold no other lock than the one before them: see claim_queue
    note_locks(jobs, first, min(last, same - 1))
    note_locks(jobs, max(first, same, same_last + 1), last)
    if behind ~= run_behind then runs[#runs + 1], run_behind = 0, behind end
    runs[#runs] = runs[#runs] + n
    causes.lease(n)
end

local RUN_LEAST = 8 -- leases, on average: to leave out the tokens of fewer costs more than it saves

-- Packs the leases of this claim for the answer: how many there are of each run, and of each its first token and the entries. nil: the runs are short.
function claim_start.packed()
    if leased == 0 or #runs * RUN_LEAST > leased / 2 then return nil end
    local packed, n, first = {''}, 1, 1
    for i = 1, #runs do
        local behind = first + 2 * runs[i]
        n = n + 1
        packed[n] = leases[first]
        for k = first + 1, behind, 2 do
            n = n + 1
            packed[n] = leases[k]
        end
        runs[i], first = digits(runs[i]), behind
    end
    packed[1] = concat(runs, ' ')
    return packed
end

-- Leases jobs that start at that time.
local function lease_at(jobs, first, n, l, at, cost)
    lease(jobs, first, n, cache.slot_text(at, cost), l.tail)
    claim.free = claim.free - n
    if at > now then claim.count_far(at) end
end

-- ---- How many

-- Returns how many jobs of this type could be leased, whatever its gates say.
function claim_start.room(s)
    if s.limited then return claim.free end
    return claim.reserved and claim.prefetch or claim.free + claim.prefetch
end

-- Estimates how many slots of e, at most n, may be granted: those that are free at the end of what is granted ahead, or, at a small burst, those
-- that come one by one until then.
local function slots_ahead(e, n, till)
    local base = e.base
    local free = gate.count(e, till, n, 1)
    if base.in_flight then return free end
    return max(free, floor((till - gate.start(e, 1)) * base.count / base.period) + 1)
end

-- Estimates how many of `most` jobs of s will start.
function claim_start.likely(s, most)
    local n, gates = min(most, claim_start.room(s)), s.gates
    for i = 1, #gates do n = gates[i].fixed and 0 or min(n, slots_ahead(gates[i], n, claim.till(s))) end
    return n
end

-- Counts the jobs of a lane from `first` on that are equal to it, at most `most`.
function claim_start.count_equal(s, jobs, first, most)
    if claim.halts then return 1 end -- each of them may have been cancelled
    most = min(most, #jobs - first + 1)
    if not s.limited then return most end
    local n = 0
    while n < most and not names_cost(jobs[first + n]) do n = n + 1 end
    return max(1, n)
end

-- ---- Slots

local function take(gates, at, n, cost)
    for i = 1, #gates do
        if not gates[i].fixed then gate.take(gates[i], at, n, cost) end -- fixed: a pause that ends within what is granted ahead
    end
end

-- Counts how many of `most` jobs may start at this moment at the open gates of a lane.
local function count_of_lane(gates, most, cost)
    for i = 1, #gates do most = gate.count(gates[i], now, most, cost) end
    return max(1, most)
end

-- Takes the slots of one job from when the gates open, as a gate is not open yet or there is no executor. All else is as in take_slots.
local function take_later(s, l, most, cost, at, closed, lane_at, lane_closed)
    local till = claim.till(s)
    if lane_at > till then return claim.stop(cost, lane_closed, lane_at, true) end
    if at > till then return claim.stop(cost, closed, at, false) end
    if most < 1 then return claim.no_gate_stops() end
    if lane_at > at then at = lane_at end
    take(s.gates, at, 1, cost)
    take(l.gates, at, 1, cost)
    return 1, at
end

-- Takes slots for up to `most` jobs that can start at the same time, from every gate of the type (which waits since ticket) and of the lane (since
-- lane_ticket). Returns how many and when. nil: none, and claim.stopped is the gate that opens last, if that is later than may be granted.
local function take_slots(s, l, most, cost, ticket, lane_ticket)
    local n, at, closed = gate.slots(s.gates, claim.free, cost, s.name, ticket)
    if n > most then n = most end
    local gates, lane_at, lane_closed = l.gates, now, nil
    if #gates > 0 then lane_at, lane_closed = meet.opens(gates, cost, l.node, lane_ticket, now) end
    if n < 1 or lane_at > now then return take_later(s, l, most, cost, at, closed, lane_at, lane_closed) end
    if n > 1 then n = count_of_lane(gates, n, cost) end
    if #gates > 0 then take(gates, now, n, cost) end
    gate.use_slots(n)
    return n, now
end

-- Takes slots for one job behind others that have just started, where one gate says all: it is asked and taken from in one step. nil: take_slots is
-- needed.
local function take_following(s, l, cost)
    local e = s.gates[1]
    if #s.gates ~= 1 or e.fixed or #l.gates > 0 then return nil end
    return gate.take_next(e, cost, claim.till(s))
end

-- ---- Starting

local function start_free(s, l, jobs, first, most)
    if most < 1 then return 0 end
    lease(jobs, first, most, '', l and l.tail or '/' .. s.lane_head)
    local ahead = min(most, claim.prefetch)
    claim.prefetch, claim.free = claim.prefetch - ahead, claim.free - (most - ahead)
    return most
end

-- Leases up to `most` equal jobs of a list from `first` on, each when all gates let it start: first the jobs that may start at this moment, then
-- one after the other as the gates open. Returns how many; if less than `most`, claim.stopped says why. `most` is at most room(); where that is 0,
-- the gates are only asked. l nil: the type has no limits.
function claim_start.jobs(s, l, jobs, first, most, cost, ticket, lane_ticket)
    if not s.limited then return start_free(s, l, jobs, first, most) end
    local started, at = take_slots(s, l, most, cost, ticket, lane_ticket)
    if not started then return 0 end
    if not s.first then causes.first(s, leased / 2) end
    lease_at(jobs, first, started, l, at, cost)
    while started < most do
        local n = 1
        at = take_following(s, l, cost)
        if not at then n, at = take_slots(s, l, most - started, cost, ticket, lane_ticket) end
        if not at then return started end
        lease_at(jobs, first + started, n, l, at, cost)
        started = started + n
    end
    return started
end

return claim_start
