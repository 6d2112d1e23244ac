-- claim_lanes: serving what is due from the lanes.
--
-- uses: check claim_call claim_faults claim_grant claim_halt claim_park claim_wait gate slices
local claim_lanes = {}

local claim, faults, grant, halt, park, wait = claim_call, claim_faults, claim_grant, claim_halt, claim_park, claim_wait

local DUE_MOST = 64            -- gates looked at in one pass

-- Leases jobs of a type without limits from the head of its lane.
local function serve_free(s, l, most)
    local n = 0
    while n < most and grant.room(s) > 0 do
        local entry = halt.head(s, l, min(most - n, grant.room(s)) + 1)
        if not entry then break end
        grant.lease_free(l.tail, entry)
        grant.drop_head(l)
        n = n + 1
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
local function look_ahead(s, most)
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
    if claim.halts or #l.gates > 0 or cost ~= s.kind.cost then return 0 end
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

-- Leases up to most jobs from the head of the lane, each when all gates let it start. Returns how many, and of what stopped it: cost
-- of the next job, the gate of the type, the gate of the key that opens last (nil: none is closed), and when it opens.
local function serve_lane(s, l, ticket, lane_ticket, most)
    local n, ahead, open_now = 0, look_ahead(s, most), true -- not once a job starts later: those behind it do too, mostly
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
                    if lane_at > till then return n, cost, nil, of_lane, lane_at end
                    return n, cost, of_type, nil, at
                end
                claim.dead[#claim.dead + 1] = {lane = s.lane_head, entry = entry, reason = grant.unfit_reason(never, cost)}
                s.unstarted = (s.unstarted or 0) + 1
            end
        end
        grant.drop_head(l)
        local more = serve_behind and n < most and serve_behind(s, l, most - n, cost, ticket) or 0
        n, s.served = n + more, s.served + 1 + more
    end
    return n
end

-- A key's share: how many starts it has in its turn among others.
local function weight(s, key)
    local most, weighted = 1, s.kind.weighted
    for i = 1, #weighted do
        local found = call_safe('HGET', P .. 'weights', weighted[i] .. '/' .. key)
        if type(found) == 'table' then claim.note_fault(check.wrong_kind('weights', 'hash')) end
        most = max(most, type(found) == 'string' and tonumber(found) or 1)
    end
    return most
end

-- A lane of a ring with others had n starts: it goes behind them, once it has had its share.
local function pass_on(s, l, n, share)
    if share > 1 then
        local credit = 'credit:' .. s.lane_head:sub(1, -2)
        local had = call_safe('HINCRBY', P .. credit, l.key, n)
        if type(had) ~= 'number' then claim.note_fault(check.wrong_kind(credit, 'hash')) end
        if type(had) == 'number' and had < share then return wait.stay(s) end
        call_safe('HDEL', P .. credit, l.key)
    end
    wait.go_behind(s, l)
end

local function forget_share(s, l)
    if #s.kind.weighted > 0 then call_safe('HDEL', P .. 'credit:' .. s.lane_head:sub(1, -2), l.key) end
end

local function is_held(gates)
    for i = 1, #gates do
        if gates[i].hold_ticket then return true end
    end
end

-- A lane has its turn in the round. Returns how many of its jobs started, and as serve_lane the next job's cost and what closed gate
-- of the type stopped it; done: the lane has left the ring.
local function serve_turn(s, l, ticket, others, most)
    local lane_ticket = is_held(l.gates) and wait.lane_ticket(s, l) or nil
    local share, left = others and (#s.kind.weighted > 0 and weight(s, l.key) or 1) or huge, halt.left_lanes()
    local n, cost, of_type, of_lane, at
    if share < most then most = share end
    if s.limited then
        n, cost, of_type, of_lane, at = serve_lane(s, l, ticket, lane_ticket, most)
    else
        n = serve_free(s, l, most)
        s.served = s.served + n
    end
    local entry = grant.head(l, 1)
    if not entry and grant.is_over(l) then
        wait.end_lane(s, l)
        forget_share(s, l)
        return n, nil, nil, nil, true
    end
    if of_lane then
        wait.lane_sleeps(s, l, cost, of_lane, at, n > 0 and claim.next_ticket() or wait.lane_ticket(s, l))
        return n, nil, nil, nil, true
    end
    if others and n > 0 then
        pass_on(s, l, n, share)
    elseif others and halt.left_lanes() > left then
        wait.go_behind(s, l)
    else
        wait.stay(s)
    end
    return n, cost or entry and not others and s.limited and grant.cost(s, entry) or nil, of_type, at, false
end

-- One round over the lanes of a type: returns how many jobs started, whether it was stopped (a gate of the type is closed, it had its
-- turn among other types, or nothing goes on), and the next job's cost with the closed gate and its opening time.
local function serve_round(s, ticket, most, alone)
    local started, cost, closed, at = 0, nil, nil, nil
    while started < most and grant.room(s) > 0 and claim.budget > 0 do
        local l, others = wait.next_lane(s)
        if not l then return started, false end
        claim.budget = claim.budget - 1
        if faults.any and faults.of_lane(l) then
            wait.put_off_lane(s, l)
        elseif not park.is_sorted(s, l, 2) then
            park.sort_again(s, l)
        else
            local n, left
            n, cost, closed, at, left = serve_turn(s, l, ticket, others, alone and not s.resorts and most - started or 1)
            started = started + n
            if closed or n == 0 and not left or n > 0 and not alone then return started, true, cost, closed, at end
        end
    end
    return started, true, cost
end

-- A type has its turn at an open gate. Returns how many of its jobs started, whether its ring is empty, and as serve_round what comes
-- next.
local function run_type(s, ticket, most, alone)
    local started = 0
    while true do
        wait.open_ring(s, alone and most - started or 1)
        local n, stopped, cost, closed, at = serve_round(s, ticket, most - started, alone)
        grant.take_used()
        local empty, more = wait.close_ring(s)
        started = started + n
        if stopped or empty or not more then return started, empty, cost, closed, at end
    end
end

-- Is a gate of s held for another, who may start at once? Then that one comes first.
local function is_reserved(s, ticket)
    for _, e in ipairs(s.gates) do
        local till = e.hold_ticket and gate.held_until(e, s.name, ticket) or 0
        if till > now and till <= now + claim.ahead then return true end
    end
end

-- Serves those who wait at a due gate, up to share jobs. Returns how many started, and whether more could; or nil: they should come
-- after the other due gates.
local function visit(queue, name, share, is_last)
    local started, left = 0, halt.left_lanes()
    if faults.any and faults.of_wait(queue, name) then
        wait.put_off_gate(queue, name)
        return 0, false
    end
    while started < share and claim.free + claim.prefetch > 0 and claim.budget > 0 and not slices.is_full(claim.load) do
        local two = call('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', '1', 'WITHSCORES')
        claim.budget = claim.budget - 1
        if #two == 0 then
            wait.forget_gate(queue, name)
            return started, false
        end
        local s, ticket, alone = grant.state(queue, two[1]), tonumber(two[2]), #two == 2
        if faults.any and faults.of_type(s) then
            if not wait.pass_over(s, name, alone) then return started, false end
        elseif not s.mine and not halt.is_unknown(s) then
            wait.hold_aside(s, name, ticket, alone)
            if alone then return started, false end
        else
            if grant.room(s) < 1 then
                claim.starved = claim.starved or claim.kept < 1
                return started, false
            end
            if not is_last and is_reserved(s, ticket) then return nil end
            local n, gone, cost, e, at = run_type(s, ticket, share - started, alone)
            started = started + n
            if wait.after_turn(s, name, ticket, alone, n, gone, cost, e, at) then return started, not gone and not e end
            local stuck = n == 0 and not gone and not e
            if stuck and not s.has_faults then return started, halt.left_lanes() > left end
            if stuck and not wait.pass_over(s, name, alone) then return started, false end
        end
    end
    return started, started > 0
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
        local started, more = visit(queue, name, share)
        if not started then reserved[#reserved + 1] = name end
        again = again or more
    end
    for _, name in ipairs(reserved) do
        local _, more = visit(queue, name, share, true)
        again = again or more
    end
    return again
end

function claim_lanes.serve(queue, gates)
    while claim.free + claim.prefetch > 0 and claim.budget > 0 and pass(queue, gates) do gates = claim_lanes.due(queue) end
end

return claim_lanes
