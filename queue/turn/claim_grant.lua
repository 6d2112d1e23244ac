-- claim_grant: the types and lanes that a claim meets, the gates that hold them, and leasing one job.
--
-- uses: body check claim_call types rules gate slices
local claim_grant = {}

local claim = claim_call

-- Tokens of this turn: its number and two digits of base 64, in ASCII order. Formatting a number would take longer than all the
-- rest of a grant.
local DIGITS = {}
for digit in ('-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'):gmatch('.') do DIGITS[#DIGITS + 1] = digit end
local high, low, token_head

-- "@slot*cost" of the last token: mostly the next one's too.
local slot_at, slot_cost, slot_text

-- Slots of this very moment: of which type, what each job costs, how many are left and were used.
local now_of, now_cost, now_left, now_used

local NONE = claim.NONE

local AT = 64 -- "@"

-- What was leased: token, entry, token, entry ...
local leases, leased

-- A head that holds no lock until its job starts: that of the last one, mostly the next one's too.
local plain_head

function claim_grant.begin()
    high, low = 0, 64
    leases, leased, plain_head = claim.leases, 0, ';'
    now_of, now_left, now_used, slot_at = nil, 0, 0, nil
end

-- A gate whose key holds something else is closed for a while.
local function load_gate(t, name, rule)
    local g = gate.load_safe(name, rule)
    if not g then
        claim.note_fault(check.wrong_kind('gate:' .. name, 'string'))
        return {name = name, fixed = now + claim.AGAIN_US}
    end
    if t.spends then gate.remember(g) end
    return g
end

-- The gates of a list of a type, loaded; or what opens at a fixed time, {name =, fixed =}.
local function load_gates(t, list, key)
    local gates = {}
    for i = 1, #list do
        local spec = list[i]
        gates[i] = spec.fixed and spec or load_gate(t, key and spec.name .. '/' .. key or spec.name, spec.rule)
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

-- ",gate,gate": those of the gates that count what is in flight.
local function counting(gates)
    local names = ''
    for i = 1, #gates do
        local base = gates[i].base
        if base and base.in_flight then names = names .. ',' .. gates[i].name end
    end
    return names
end

-- One type in one queue, as this claim sees it.
function claim_grant.state(queue, name)
    local s = claim.states[queue][name]
    if s then return s end
    local t = types.load(name)
    claim.budget = claim.budget - claim.TYPE
    s = claim.new_type(queue, t, t.limited and global_gates(t) or t.global)
    s.counting = t.in_flight and counting(s.gates)
    claim.states[queue][name] = s
    claim.order[#claim.order + 1] = s
    for _, limit in ipairs(t.broken) do claim.broken[#claim.broken + 1] = limit end
    return s
end

-- One lane of it.
function claim_grant.lane(s, key)
    local l = s.lanes[key]
    if l then return l end
    local gates = NONE
    if s.keyed then
        claim.budget = claim.budget - claim.LANE - claim.KEY_GATE * #s.type.keyed
        if key ~= '' then
            gates = load_gates(s.type, s.type.keyed, key)
            s.has_keys = true
        end
    end
    l = claim.new_lane(s, key, gates)
    if s.counting then
        local names = s.counting .. counting(gates)
        if names ~= '' then l.tail = l.tail .. '~' .. sub(names, 2) end
    end
    s.lanes[key] = l
    claim.lanes[#claim.lanes + 1] = l
    return l
end

-- The next job of a lane, or nil: first what Redis has, `ahead` at a time, then what this claim parked. nil too where the claim has its
-- load: see is_over.
function claim_grant.head(l, ahead)
    local entry = l.read[l.read_at]
    if entry then return entry end
    if l.whole then return l.parked[l.parked_next] end
    local got
    got, l.whole = slices.read('LRANGE', P .. 'lane:' .. l.name, l.fetched, ahead, claim.load)
    if l.fetched == 0 then l.read = got end
    for i = 1, l.fetched > 0 and #got or 0 do l.read[l.fetched + i] = got[i] end
    l.fetched = l.fetched + #got
    return got[1] or l.whole and l.parked[l.parked_next] or nil
end

-- Has a lane no job left?
function claim_grant.is_over(l)
    if l.read[l.read_at] or l.parked[l.parked_next] then return false end
    return l.whole or call('LLEN', P .. 'lane:' .. l.name) <= l.fetched
end

function claim_grant.drop_head(l)
    if l.read[l.read_at] then l.read_at = l.read_at + 1 else l.parked_next = l.parked_next + 1 end
end

-- Jobs of this type could be leased, whatever its gates say.
function claim_grant.room(s)
    if s.limited then return claim.free end
    return claim.reserved and claim.prefetch or claim.free + claim.prefetch
end

-- The cost of a job: its own, which is noted, else its type's.
function claim_grant.cost(s, entry)
    local cost = body.cost(entry)
    if not cost then return s.type.cost end
    s.own_costs = true
    return cost
end

local function note_lock(entry)
    local head = match(entry, '^@[^;]*;') or ';'
    if find(head, ',w', 1, true) then claim.started[#claim.started + 1] = entry else plain_head = head end
end

-- Leases a job whose slots are taken; slot: as its token says it. Nothing else is counted.
local function lease_entry(slot, tail, entry)
    if low == 64 then
        high, low = high + 1, 0
        token_head = us(claim.turn) .. '.' .. DIGITS[high]
    end
    low = low + 1
    leases[leased + 1], leases[leased + 2] = token_head .. DIGITS[low] .. slot .. tail, entry
    leased = leased + 2
    if byte(entry) == AT and sub(entry, 1, #plain_head) ~= plain_head then note_lock(entry) end
end

claim_grant.lease_entry = lease_entry

-- ---- Starting at this very moment. The slots that all gates of a type have now are counted once, and those that were used are taken
-- from them at once, before anybody asks these gates again.

function claim_grant.take_used()
    if now_used > 0 then
        local gates = now_of.gates
        for i = 1, #gates do
            if not gates[i].fixed then gate.take(gates[i], now, now_used, now_cost) end
        end
    end
    now_of, now_left, now_used = nil, 0, 0
end

local function count_now(s, cost, ticket)
    claim_grant.take_used()
    local n, gates = claim.free, s.gates
    for i = 1, #gates do
        local e = gates[i]
        if e.fixed or gate.start(e, cost, s.name, ticket) > now then return 0 end
        n = gate.count(e, now, n, cost)
    end
    return n
end

local function has_slot_now(s, cost, ticket)
    if now_of ~= s or now_cost ~= cost or now_left < 1 then
        local n = count_now(s, cost, ticket)
        now_of, now_cost, now_left = s, cost, n
    end
    return now_left > 0
end

-- Leases a job that may start at once; false: it may not, or has no executor.
function claim_grant.lease_now(s, l, entry, cost, ticket, lane_ticket)
    if claim.free < 1 or not has_slot_now(s, cost, ticket) then return false end
    local gates = l.gates
    for i = 1, #gates do
        if gates[i].fixed or gate.start(gates[i], cost, l.node, lane_ticket) > now then return false end
    end
    for i = 1, #gates do gate.take(gates[i], now, 1, cost) end
    now_left, now_used = now_left - 1, now_used + 1
    claim_grant.lease_at(l, entry, now, cost)
    return true
end

-- Of a type, or of its lane l, a job has just been leased to start at once. How many more may be leased as it was, by lease_entry and
-- without a question for each, and their slot: those of the type's own cost, which nothing but its gates holds.
function claim_grant.alike(s, l)
    if claim.halts then return 0 end
    if not s.limited then return claim_grant.room(s), '' end
    if now_of ~= s or now_cost ~= s.type.cost or slot_at ~= now or slot_cost ~= now_cost or #l.gates > 0 then return 0 end
    return min(now_left, claim.free), slot_text
end

-- So many were.
function claim_grant.count_alike(s, n)
    local ahead = s.limited and 0 or min(n, claim.prefetch)
    claim.prefetch, claim.free = claim.prefetch - ahead, claim.free - (n - ahead)
    if s.limited then now_left, now_used = now_left - n, now_used + n end
end

-- ---- Starting when the gates say

-- When a job of that cost may start by these gates, not before `at`, and the gate that opens last; nil: all are open at `at`. Who
-- asks waits there as node since ticket.
function claim_grant.opens(gates, cost, node, ticket, at)
    local last
    if now_of then claim_grant.take_used() end
    for i = 1, #gates do
        local e = gates[i]
        local t = e.fixed or gate.start(e, cost, node, ticket)
        if t > at then at, last = t, e end
    end
    return at, last
end

-- A gate at which a job of that cost can never start; nil: there is none.
function claim_grant.unfit(gates, cost)
    for i = 1, #gates do
        if not gates[i].fixed and not gate.fits(gates[i], cost) then return gates[i] end
    end
end

function claim_grant.unfit_reason(e, cost)
    return format('its cost of %d can never fit limit %s: %s', cost, e.name:match('^[^#]+'), e.base.text)
end

local function take(gates, start, cost)
    for i = 1, #gates do
        if not gates[i].fixed then gate.take(gates[i], start, 1, cost) end -- fixed: a pause that ends within what is granted ahead
    end
end

-- After a job of s has taken its slots: takes those of one more of that cost from when it may start, and returns when; nil: not until
-- `till`.
function claim_grant.take_next(s, cost, ticket, till)
    local gates = s.gates
    if #gates == 1 and not gates[1].fixed then return gate.take_next(gates[1], cost, till) end
    local start = claim_grant.opens(gates, cost, s.name, ticket, now)
    if start > till then return nil end
    take(gates, start, cost)
    return start
end

-- Leases a job of a type without limits.
function claim_grant.lease_free(tail, entry)
    lease_entry('', tail, entry)
    if claim.prefetch > 0 then claim.prefetch = claim.prefetch - 1 else claim.free = claim.free - 1 end
end

-- Takes the slots of a job at all of its gates, from that start, and leases it.
function claim_grant.lease_slot(s, l, entry, start, cost)
    take(s.gates, start, cost)
    if #l.gates > 0 then take(l.gates, start, cost) end
    claim_grant.lease_at(l, entry, start, cost)
end

-- Leases a job whose slots are taken.
function claim_grant.lease_at(l, entry, start, cost)
    if start ~= slot_at or cost ~= slot_cost then
        slot_at, slot_cost = start, cost
        slot_text = cost == 1 and format('@%d', start) or format('@%d*%d', start, cost)
    end
    lease_entry(slot_text, l.tail, entry)
    claim.free = claim.free - 1
    claim.count_far(start)
end

return claim_grant
