-- claim_lanes: serving what is due from the lanes.
--
-- uses: claim_call claim_causes claim_group claim_halt claim_meet claim_park claim_ring claim_start claim_wait gate slices
local claim_lanes = {}

local claim, halt, meet, park = claim_call, claim_halt, claim_meet, claim_park
local causes, group, ring, start, wait = claim_causes, claim_group, claim_ring, claim_start, claim_wait

local DUE_MOST = 64            -- gates visited in one pass

-- Buries a job that its gates can never let start.
local function bury(s, l, entry, e, cost)
    claim.dead[#claim.dead + 1] = {lane = s.lane_head, entry = entry, reason = meet.unfit_reason(e, cost)}
    claim.count(s, 'unstarted')
    meet.drop(l, 1)
    s.served = s.served + 1
end

-- Starts up to `most` jobs from the head of a lane. Returns how many; claim.stopped is the gate that stopped it.
local function serve_lane(s, l, most, lane_ticket)
    local n, ticket = 0, claim.visit.ticket
    local to_read = (most == 1 and 1 or start.likely(s, most)) + 1 -- those for which there are slots, and the one behind
    while n < most do
        local entry = halt.head(s, l, to_read)
        if not entry then break end
        local cost, jobs, first, equal = s.limited and meet.cost(s, entry) or 1, l.read, l.read_at, most - n
        if not jobs[first] then jobs, first = l.parked, l.parked_next end
        if equal > 1 then equal = start.count_equal(s, jobs, first, equal) end
        if claim.together then
            equal = group.fit(jobs, first, equal)
            if equal == 0 then break end
        end
        local started = start.jobs(s, l, jobs, first, equal, cost, ticket, lane_ticket)
        if claim.together then group.join(jobs, first, started) end
        if started > 0 then meet.drop(l, started) end
        n, s.served = n + started, s.served + started
        if claim.stopped.gate then
            local never = started == 0 and (meet.unfit(s.gates, cost) or meet.unfit(l.gates, cost))
            if not never then return n end
            bury(s, l, entry, never, cost)
            claim.no_gate_stops()
        end
    end
    return n
end

local function has_hold(gates)
    for i = 1, #gates do
        if gates[i].hold_ticket then return true end
    end
end

-- Gives a lane its turn in the round. Returns how many of its jobs started, and whether it has left the ring. claim.stopped has the next job's
-- cost, and the closed gate of the type that stopped it.
local function serve_turn(s, l, others, most)
    local stopped, left_before, share, had = claim.stopped, claim.left_lanes, 1, 0
    causes.from_lane(l)
    local lane_ticket = has_hold(l.gates) and ring.ticket(s, l) or nil
    if others and #s.type.weighted > 0 then share, had = ring.share(s, l.key) end
    local n = serve_lane(s, l, others and min(share - had, most) or most, lane_ticket)
    local entry = meet.head(l, 1)
    if not entry and meet.is_over(l) then
        ring.finish(s, l)
        return n, true
    end
    local goes_behind = others and claim.left_lanes > left_before
    if n > 0 then goes_behind = others and not ring.use_share(s, l, n, share, had) end
    if stopped.of_lane then
        wait.lane_sleeps(s, l, n > 0 and (goes_behind or not others) and claim.next_ticket() or ring.ticket(s, l))
        claim.no_gate_stops()
        return n, true
    end
    if goes_behind then ring.go_behind(s, l) else ring.stay(s) end
    if not stopped.cost and entry and not others and s.limited then stopped.cost = meet.cost(s, entry) end
    return n, false
end

-- Makes one round over the lanes of a type, up to `most` jobs. Returns how many started, and whether it was stopped: a gate of the type is closed
-- (claim.stopped), the type had its turn among others, or nothing goes on.
local function serve_round(s, most)
    local started, alone = 0, claim.visit.alone
    most = min(most, start.room(s))
    while started < most and claim.may_go_on() do
        local l, others = ring.next_lane(s)
        if not l then
            claim.no_gate_stops()
            return started, false
        end
        claim.budget = claim.budget - 1
        if (s.resorts or l.key == '') and not park.is_sorted(s, l, 2) then
            park.sort_again(s, l)
        else
            local n, has_left = serve_turn(s, l, others, alone and not s.resorts and most - started or 1)
            started = started + n
            if claim.stopped.gate or n == 0 and not has_left or n > 0 and not alone then return started, true end
        end
    end
    return started, true
end

-- Runs a type that has its turn at an open gate, up to `most` jobs; claim.visit.started counts them. Returns whether its ring is empty.
local function run_type(s, most)
    local visit = claim.visit
    claim.no_gate_stops()
    causes.from_gate(s)
    while true do
        ring.open(s, visit.alone and most - visit.started or 1)
        local n, stopped = serve_round(s, most - visit.started)
        local empty, more = ring.close(s)
        visit.started = visit.started + n
        if stopped or empty or not more then return empty end
    end
end

-- True when a gate of s is held for another waiter, which may start at once and so comes first.
local function must_yield(s)
    for _, e in ipairs(s.gates) do
        local till = e.hold_ticket and gate.held_until(e, s.name, claim.visit.ticket) or 0
        if till > now and till <= now + claim.ahead then return true end
    end
end

-- Begins the turn of the first type that waits at a due gate. nil: none waits there.
local function first_at(queue, name)
    local two = call('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', '1', 'WITHSCORES')
    claim.budget = claim.budget - 1
    if #two == 0 then return nil end
    local s = meet.state(queue, two[1])
    claim.begin_visit(name, tonumber(two[2]), #two == 2)
    return s
end

-- Serves a type that has its turn, up to `most` jobs; left_before: how many jobs had left lanes as the gate was visited. Returns whether the gate
-- is done with, and whether it could start more.
local function serve_type(s, most, left_before)
    local gone = run_type(s, most)
    local could_more = not gone and not claim.stopped.gate
    if wait.end_visit(s, gone) then return true, could_more end
    if claim.visit.started == 0 and could_more then return true, claim.left_lanes > left_before end
    return false, false
end

local function can_serve() return claim.free + claim.prefetch > 0 and claim.may_go_on() and not slices.is_full(claim.load) end

-- Serves the types that wait at a due gate, up to `share` jobs. Returns whether more could start; nil: they should come after the other due gates.
local function serve_gate(queue, name, share, is_last)
    local started, left_before = 0, claim.left_lanes
    if wait.is_closed(queue, name) then return false end
    while started < share and can_serve() do
        local s = first_at(queue, name)
        if not s then
            wait.forget_gate(queue, name)
            return false
        end
        if not s.mine and not halt.why_dead(s) then
            wait.hold_type(s)
            if claim.visit.alone then return false end
        else
            if start.room(s) < 1 then
                claim.starved = claim.starved or claim.kept < 1
                return false
            end
            if not is_last and must_yield(s) then return nil end
            local done, more = serve_type(s, share - started, left_before)
            started = started + claim.visit.started
            if done then return more end
        end
    end
    return started > 0
end

-- Puts lanes whose key gates are due back into their rings, as many as may go in one claim.
local function wake_lanes(queue)
    if claim.waking < 1 then return end
    for _, name in ipairs(wait.due_keys(queue, min(claim.waking, 1000))) do
        if claim.waking < 1 or claim.budget < claim.TO_SERVE or not claim.may_go_on() then break end
        claim.waking = claim.waking - wait.wake_waiters(queue, name)
    end
    wait.sleep_on(queue)
end

-- Returns what is due in a queue: the gates at which types wait, soonest first.
function claim_lanes.due(queue)
    local gates, asleep = wait.due_gates(queue, DUE_MOST)
    if asleep and claim.free + claim.prefetch > 0 then
        wake_lanes(queue)
        gates = wait.due_gates(queue, DUE_MOST)
    end
    return gates
end

-- Makes one pass over the gates that are due; returns whether more could start.
local function pass(queue, gates)
    local again, reserved = false, {}
    local share = max(1, ceil((claim.free + claim.prefetch) / max(1, #gates)))
    for _, name in ipairs(gates) do
        local more = serve_gate(queue, name, share, false)
        if more == nil then reserved[#reserved + 1] = name end
        again = again or more
    end
    for _, name in ipairs(reserved) do again = serve_gate(queue, name, share, true) or again end
    return again
end

function claim_lanes.serve(queue, gates)
    while claim.free + claim.prefetch > 0 and claim.budget > 0 and pass(queue, gates) do gates = claim_lanes.due(queue) end
end

return claim_lanes
