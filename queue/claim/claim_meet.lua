-- claim_meet: the types and lanes that a claim meets, with their gates.
--
-- uses: body check claim_call cost gate large partition rules slices types
local claim_meet = {}

local claim = claim_call

local NONE = claim.NONE
local FEW = 3 -- jobs of a lane are read without asking how large they may be

-- Loads a gate; one whose key is of a wrong kind is closed for a while.
local function load_gate(t, name, rule)
    local g = gate.load_safe(name, rule)
    if not g then
        claim.note_fault(check.wrong_kind('gate:' .. name, 'string'))
        return {name = name, fixed = now + claim.AGAIN_US}
    end
    if t.spends or rule.of and not rule.of_jobs then gate.remember(g) end
    if not rule.by and not rule.in_flight then gate.keep(g) end
    return g
end

-- Loads the gates of a list of a type; what opens at a fixed time is {name =, fixed =}.
local function load_gates(t, list, key)
    local gates = {}
    for i = 1, #list do
        local spec = list[i]
        local name = key and spec.name .. '/' .. key or spec.name
        gates[i] = spec.fixed and {name = name, fixed = spec.fixed} or load_gate(t, name, spec.rule)
    end
    return gates
end

local function global_gates(t)
    local gates = load_gates(t, t.global)
    for _, pause in ipairs(t.paused) do
        local till = rules.paused(pause.set)
        if till > now then gates[#gates + 1] = {name = pause.name, fixed = till} end
    end
    return gates
end

-- Names the gates that count what is in flight: ",gate,gate".
local function counting(gates)
    local names = ''
    for i = 1, #gates do
        local base = gates[i].base
        if base and base.in_flight then names = names .. ',' .. gates[i].name end
    end
    return names
end

-- Meets one type in one queue, as this claim sees it.
function claim_meet.state(queue, name)
    local s = claim.states[queue][name]
    if s then return s end
    local t = types.load(name)
    s = claim.new_type(queue, t, t.limited and global_gates(t) or t.global)
    claim.budget = claim.budget - claim.TYPE - claim.GATE * max(0, #s.gates - 1)
    s.counting = t.in_flight and counting(s.gates)
    s.unknown = partition.misplaced(name)
    if s.unknown then s.mine = false end
    claim.states[queue][name] = s
    claim.order[#claim.order + 1] = s
    for _, limit in ipairs(t.broken) do claim.broken[#claim.broken + 1] = limit end
    return s
end

-- Meets one lane of the type.
function claim_meet.lane(s, key)
    local l = s.lanes[key]
    if l then return l end
    local gates, till, owns = NONE, huge, nil
    if s.keyed then
        if key ~= '' then
            local keyed
            keyed, till, owns = types.keyed(s.type, key)
            gates = load_gates(s.type, keyed, key)
            s.has_keys = true
        end
        claim.budget = claim.budget - claim.LANE - claim.KEY_GATE * max(#s.type.keyed, #gates)
    end
    l = claim.new_lane(s, key, gates)
    if owns then
        l.tail = types.digest(s.type, owns) .. '/' .. l.name
        if till < huge then l.till = till end
        local limits, n = claim.limits, #claim.limits
        limits[n + 1], limits[n + 2] = l.node, types.text_for(s.type, owns)
    end
    if s.counting or owns then
        local names = (s.counting or '') .. counting(gates)
        if names ~= '' then l.tail = l.tail .. '~' .. sub(names, 2) end
    end
    s.lanes[key] = l
    claim.lanes[#claim.lanes + 1] = l
    return l
end

-- Returns the next job of a lane, or nil: first what Redis has, `ahead` at a time, then what this claim parked. nil too where the claim has its
-- load: see is_over.
function claim_meet.head(l, ahead)
    local entry = l.read[l.read_at]
    if entry then return entry end
    if l.whole then return l.parked[l.parked_next] end
    local got
    local at_once = ahead > FEW and large.lane_at_once(l.s.queue) or nil
    got, l.whole = slices.read('LRANGE', P .. 'lane:' .. l.name, l.fetched, ahead, claim.load, at_once)
    if l.fetched == 0 then l.read = got end
    for i = 1, l.fetched > 0 and #got or 0 do l.read[l.fetched + i] = got[i] end
    l.fetched = l.fetched + #got
    return got[1] or l.whole and l.parked[l.parked_next] or nil
end

-- True when a lane has no job left.
function claim_meet.is_over(l)
    if l.read[l.read_at] or l.parked[l.parked_next] then return false end
    return l.whole or call('LLEN', P .. 'lane:' .. l.name) <= l.fetched
end

-- Drops n jobs that have left a lane, of those that were read or parked, from its head on.
function claim_meet.drop(l, n)
    if l.read[l.read_at] then l.read_at = l.read_at + n else l.parked_next = l.parked_next + n end
end

-- Returns the cost of a job: its own, which is noted, else its type's.
function claim_meet.cost(s, entry)
    if s.type.named then
        local c, said = types.job_cost(s.type, entry)
        s.own_costs = s.own_costs or said ~= nil
        return c
    end
    local slots = body.cost(entry)
    if not slots then return s.type.cost end
    s.own_costs = true
    return slots
end

-- Returns when a job of that cost may start by these gates, not before `at`, and the gate that opens last; nil: all are open at `at`. Who asks
-- waits there as node since ticket.
function claim_meet.opens(gates, cost, node, ticket, at)
    local last
    for i = 1, #gates do
        local e = gates[i]
        local t = e.fixed or gate.start(e, cost, node, ticket)
        if t > at then at, last = t, e end
    end
    return at, last
end

-- Finds a gate at which a job of that cost can never start; nil: there is none.
function claim_meet.unfit(gates, cost)
    for i = 1, #gates do
        if not gates[i].fixed and not gate.fits(gates[i], cost) then return gates[i] end
    end
end

function claim_meet.unfit_reason(e, c)
    return format('its cost of %s can never fit limit %s: its burst is %d', cost.say(c, e.base.of), e.name:match('^[^#]+'), e.base.burst)
end

return claim_meet
