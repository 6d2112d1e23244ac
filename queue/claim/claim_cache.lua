-- claim_cache: what a claim remembers to be faster. Nothing depends on it: with ON = false each question is asked anew, and the claim decides the
-- same. test_throttle runs worlds both ways.
--
-- uses: claim_call gate
local claim_cache = {}

local claim = claim_call

local ON = true

-- The cache keeps what the gates of one type for all keys say to jobs of one cost: how many slots are left, and were used. Where none is free, it
-- keeps when the next job may start, and the gate that opens last. The lanes of a type start one job each in turn, so these gates are asked once,
-- and what was used is taken once.
local slots_of, slots_cost, slots_left, slots_used, slots_at, slots_closed

-- These keep what a token says of the last slot.
local slot_at, slot_cost, slot_text

function claim_cache.begin()
    slots_of, slots_left, slots_used = nil, 0, 0
    slot_at, claim_cache.plain = nil, ';'
end

-- ---- Slots of this moment

-- Takes from the gates what was used. Whoever asks these gates calls this first.
function claim_cache.take_used()
    if slots_used > 0 then
        local gates = slots_of.gates
        for i = 1, #gates do
            if not gates[i].fixed then gate.take(gates[i], now, slots_used, slots_cost) end
        end
    end
    slots_of, slots_left, slots_used = nil, 0, 0
end

-- Asks how many slots all gates have now, at most the executors; when a slot is open at all of them, and which gate opens last.
local function ask(gates, cost, node, ticket)
    local n, at, last = claim.free, now, nil
    for i = 1, #gates do
        local e = gates[i]
        local t = e.fixed or gate.start(e, cost, node, ticket)
        if t > at then
            n, at, last = 0, t, e
        elseif n > 0 and not e.fixed then
            n = gate.count(e, now, n, cost)
        end
    end
    return n, at, last
end

-- Returns how many of `most` jobs of s may start at this moment by these gates, where s waits since ticket. Where that is 0: when the next one may,
-- and the gate that opens last.
function claim_cache.slots(s, most, cost, ticket)
    if slots_of ~= s or slots_cost ~= cost or slots_left < 1 and slots_used > 0 or not ON then
        claim_cache.take_used()
        slots_of, slots_cost = s, cost
        slots_left, slots_at, slots_closed = ask(s.gates, cost, s.name, ticket)
    end
    return slots_left < most and slots_left or most, slots_at, slots_closed
end

-- Counts n slots as used.
function claim_cache.use_slots(n)
    slots_left, slots_used = slots_left - n, slots_used + n
    if not ON then claim_cache.take_used() end
end

-- ---- Texts

-- Writes "@slot*cost", as a token says it.
function claim_cache.slot_text(at, cost)
    if at ~= slot_at or cost ~= slot_cost or not ON then
        slot_at, slot_cost = at, cost
        slot_text = cost == 1 and format('@%d', at) or format('@%d*%d', at, cost)
    end
    return slot_text
end

-- True when an entry holds a lock until its job starts. An entry that begins with claim_cache.plain does not: that is the head, or first byte, of
-- the last entry that was asked for.
function claim_cache.has_lock(entry)
    local head = match(entry, '^@[^;]*;') or sub(entry, 1, 1)
    if find(head, ',w', 1, true) then return true end
    if ON then claim_cache.plain = head end
    return false
end

-- ---- Gates at which lanes sleep

local CROWD = 50 -- more of them in a queue are not read, but asked for one by one

local function read_sleepers(queue)
    local n = ON and call_safe('ZCARD', P .. 'sleep:' .. queue)
    if type(n) ~= 'number' or n > CROWD then
        claim.crowded[#claim.crowded + 1], claim.crowded[queue] = queue, true
    elseif n > 0 then
        claim.budget = claim.budget - floor(n / claim.KEYS)
        for _, name in ipairs(call('ZRANGE', P .. 'sleep:' .. queue, '0', '-1')) do claim_cache.count_sleepers(queue, name, 1) end
    end
end

-- Counts the queues of this worker in which lanes sleep at a gate, by the gate's name; and lists the queues that have too many such lanes to count.
function claim_cache.sleepers()
    if not claim.sleepers then
        claim.sleepers, claim.crowded = {}, {}
        for _, queue in ipairs(claim.open) do read_sleepers(queue) end
    end
    return claim.sleepers, claim.crowded
end

-- Counts n more lanes that sleep at that gate.
function claim_cache.count_sleepers(queue, name, n)
    local sleepers = claim.sleepers
    if sleepers and not claim.crowded[queue] then sleepers[name] = (sleepers[name] or 0) + n end
end

return claim_cache
