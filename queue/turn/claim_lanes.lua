-- claim_lanes: serving what is due from the lanes.
--
-- uses: claim_call claim_faults claim_grant claim_halt claim_park claim_ring claim_wait gate slices
local claim_lanes = {}

local claim, faults, grant, halt, park = claim_call, claim_faults, claim_grant, claim_halt, claim_park
local ring, wait = claim_ring, claim_wait

local DUE_MOST = 64            -- gates looked at in one pass

-- Leases jobs of a type without limits from the head of its lane.
local function serve_free(s, l, most)
    local n = 0
    while n < most and grant.room(s) > 0 do
        local entry = halt.head(s, l, min(most - n, grant.room(s)) + 1)
        if not entry then break end
        grant.lease_free(l.tail, entry)
        grant.drop_head(l)
        n, s.served = n + 1, s.served + 1
    end
    return n
end

-- About how many slots of e, at most n, may be granted: those that are free at the end of what is granted ahead, or, at a small
-- burst, those that come one after the other until then.
local function slots_ahead(e, n, till)
    local base = e.base
    local free = gate.count(e, till, n, 1)
    if base.in_flight then return free end
    return max(free, floor((till - gate.start(e, 1)) * base.count / base.period) + 1)
end

-- How many jobs to read of a lane that may start most: those for which there are slots, and the one behind.
local function jobs_to_read(s, most)
    if most == 1 then return 2 end
    local n, gates = min(most, claim.free), s.gates
    for i = 1, #gates do n = gates[i].fixed and 0 or min(n, slots_ahead(gates[i], n, claim.till(s))) end
    return n + 1
end

-- A job of a lane was leased to start at once: so are up to most of those that were read behind it. Returns how many.
local function serve_alike(s, l, most)
    local n, slot = grant.alike(s, l)
    if n < 1 then return 0 end
    local read, first, tail = l.read, l.read_at, l.tail
    local at, behind = first, first + min(n, most)
    while at < behind do
        local entry = read[at]
        if not entry or find(entry, '"cost"', 1, true) then break end
        grant.lease_entry(slot, tail, entry)
        at = at + 1
    end
    l.read_at = at
    grant.count_alike(s, at - first)
    return at - first
end

-- The same for one that was leased to start later: each of them when the gates of its type open next.
local function serve_ahead(s, l, most, cost, ticket)
    if claim.halts or #l.gates > 0 or cost ~= s.type.cost then return 0 end
    local read = l.read
    local first, at, behind = l.read_at, l.read_at, l.read_at + min(most, claim.free)
    while at < behind do
        local entry = read[at]
        if not entry or find(entry, '"cost"', 1, true) then break end
        local start = grant.take_next(s, cost, ticket, claim.till(s))
        if not start then break end
        grant.lease_at(l, entry, start, cost)
        at = at + 1
    end
    l.read_at = at
    return at - first
end

-- Leases up to most jobs from the head of the lane, each when all gates let it start. Returns how many; a gate that stopped it is in
-- claim.stopped.
local function serve_lane(s, l, most, lane_ticket)
    local ticket = claim.visit.ticket
    local n, ahead, open_now = 0, jobs_to_read(s, most), true -- not once a job starts later: those behind it do too, mostly
    while n < most and claim.free > 0 do
        local entry = halt.head(s, l, ahead)
        if not entry then break end
        local cost, serve_behind = grant.cost(s, entry), nil
        if open_now and grant.lease_now(s, l, entry, cost, ticket, lane_ticket) then
            n, serve_behind = n + 1, serve_alike
        else
            local at, of_type = grant.opens(s.gates, cost, s.name, ticket, now)
            local lane_at, of_lane = now, nil
            if #l.gates > 0 then lane_at, of_lane = grant.opens(l.gates, cost, l.node, lane_ticket, now) end
            local start = lane_at > at and lane_at or at
            local till = claim.till(s)
            if start <= till then
                grant.lease_slot(s, l, entry, start, cost)
                n, open_now, serve_behind = n + 1, false, serve_ahead
            else
                local never = grant.unfit(s.gates, cost) or grant.unfit(l.gates, cost)
                if not never then
                    if lane_at > till then claim.stop(cost, of_lane, lane_at, true) else claim.stop(cost, of_type, at, false) end
                    return n
                end
                claim.dead[#claim.dead + 1] = {lane = s.lane_head, entry = entry, reason = grant.unfit_reason(never, cost)}
                claim.count(s, 'unstarted')
            end
        end
        grant.drop_head(l)
        local more = serve_behind and n < most and serve_behind(s, l, most - n, cost, ticket) or 0
        n, s.served = n + more, s.served + 1 + more
    end
    return n
end

local function is_held(gates)
    for i = 1, #gates do
        if gates[i].hold_ticket then return true end
    end
end

-- A lane has its turn in the round. Returns how many of its jobs started, and whether it has left the ring. claim.stopped: the next job's
-- cost, and what closed gate of the type stopped it.
local function serve_turn(s, l, others, most)
    local stopped, left_before, share = claim.stopped, halt.left_lanes(), huge
    local lane_ticket = is_held(l.gates) and ring.ticket(s, l) or nil
    if others then share = #s.type.weighted > 0 and ring.share(s, l.key) or 1 end
    claim.stop(nil, nil, nil, false)
    local n = (s.limited and serve_lane or serve_free)(s, l, min(share, most), lane_ticket)
    local entry = grant.head(l, 1)
    if not entry and grant.is_over(l) then
        ring.finish(s, l)
        return n, true
    end
    if stopped.of_lane then
        wait.lane_sleeps(s, l, n > 0 and claim.next_ticket() or ring.ticket(s, l))
        claim.stop(nil, nil, nil, false)
        return n, true
    end
    if others and n > 0 then
        ring.pass_on(s, l, n, share)
    elseif others and halt.left_lanes() > left_before then
        ring.go_behind(s, l)
    else
        ring.stay(s)
    end
    if not stopped.cost and entry and not others and s.limited then stopped.cost = grant.cost(s, entry) end
    return n, false
end

-- One round over the lanes of a type, up to most jobs; returns how many started, and whether it was stopped: a gate of the type is closed
-- (claim.stopped), it had its turn among other types, or nothing goes on.
local function serve_round(s, most)
    local started, alone = 0, claim.visit.alone
    while started < most and grant.room(s) > 0 and claim.budget > 0 do
        local l, others = ring.next_lane(s)
        if not l then
            claim.stop(nil, nil, nil, false)
            return started, false
        end
        claim.budget = claim.budget - 1
        if faults.any and faults.of_lane(l) then
            wait.put_off_lane(s, l)
        elseif not park.is_sorted(s, l, 2) then
            park.sort_again(s, l)
        else
            local n, has_left = serve_turn(s, l, others, alone and not s.resorts and most - started or 1)
            started = started + n
            if claim.stopped.gate or n == 0 and not has_left or n > 0 and not alone then return started, true end
        end
    end
    return started, true
end

-- A type has its turn at an open gate, up to most jobs; claim.visit.started: how many of them started. Returns whether its ring is empty.
local function run_type(s, most)
    local visit = claim.visit
    claim.stop(nil, nil, nil, false)
    while true do
        ring.open(s, visit.alone and most - visit.started or 1)
        local n, stopped = serve_round(s, most - visit.started)
        grant.take_used()
        local empty, more = ring.close(s)
        visit.started = visit.started + n
        if stopped or empty or not more then return empty end
    end
end

-- Is a gate of s held for another, who may start at once? Then that one comes first.
local function is_reserved(s)
    for _, e in ipairs(s.gates) do
        local till = e.hold_ticket and gate.held_until(e, s.name, claim.visit.ticket) or 0
        if till > now and till <= now + claim.ahead then return true end
    end
end

-- The first of those who wait at a due gate, a type; its turn begins. nil: nobody waits there.
local function first_at(queue, name)
    local two = call('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', '1', 'WITHSCORES')
    claim.budget = claim.budget - 1
    if #two == 0 then return nil end
    local s = grant.state(queue, two[1])
    claim.begin_visit(name, tonumber(two[2]), #two == 2)
    return s
end

-- A type has its turn, up to most jobs; left_before: how many jobs had left lanes as the gate was visited. Returns whether the gate is done
-- with, and whether it could start more.
local function serve_type(s, most, left_before)
    local gone = run_type(s, most)
    local could_more = not gone and not claim.stopped.gate
    if wait.end_turn(s, gone) then return true, could_more end
    local stuck = claim.visit.started == 0 and could_more
    if stuck and not s.has_faults then return true, halt.left_lanes() > left_before end
    if stuck and not wait.pass_over(s) then return true, false end
    return false, false
end

local function can_serve() return claim.free + claim.prefetch > 0 and claim.budget > 0 and not slices.is_full(claim.load) end

-- Serves those who wait at a due gate, up to share jobs. Returns whether more could start; nil: they should come after the other due
-- gates.
local function serve_gate(queue, name, share, is_last)
    local started, left_before = 0, halt.left_lanes()
    if faults.any and faults.of_wait(queue, name) then
        wait.put_off_gate(queue, name)
        return false
    end
    while started < share and can_serve() do
        local s = first_at(queue, name)
        if not s then
            wait.forget_gate(queue, name)
            return false
        end
        if faults.any and faults.of_type(s) then
            if not wait.pass_over(s) then return false end
        elseif not s.mine and not halt.is_unknown(s) then
            wait.hold_aside(s)
            if claim.visit.alone then return false end
        else
            if grant.room(s) < 1 then
                claim.starved = claim.starved or claim.kept < 1
                return false
            end
            if not is_last and is_reserved(s) then return nil end
            local done, more = serve_type(s, share - started, left_before)
            started = started + claim.visit.started
            if done then return more end
        end
    end
    return started > 0
end

-- The lanes whose key gates are due go back to their rings, as many as may in one claim.
local function wake_lanes(queue)
    if claim.waking < 1 then return end
    local woken = {}
    claim.woken[queue] = woken
    for _, name in ipairs(wait.due_keys(queue, min(claim.waking, 1000))) do
        if claim.waking < 1 or claim.budget < claim.TO_SERVE then break end
        woken[name] = true
        if faults.any and faults.of_wait(queue, name) then
            wait.put_off_gate(queue, name)
        else
            claim.waking = claim.waking - wait.wake_lanes(queue, name)
        end
    end
    wait.sleep_on(queue)
end

-- What is due in a queue: the gates at which types wait, soonest first.
function claim_lanes.due(queue)
    local gates, asleep = wait.due_gates(queue, DUE_MOST)
    if asleep and claim.free + claim.prefetch > 0 then
        wake_lanes(queue)
        gates = wait.due_gates(queue, DUE_MOST)
    end
    return gates
end

-- One pass over the gates that are due; returns whether more could start.
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
