-- claim_cache: what a claim remembers to be faster. Nothing depends on it: with ON = false each question is asked anew, and the claim decides the
-- same. test_throttle runs worlds both ways.
--
-- uses: claim_call cost heads
local claim_cache = {}

local claim = claim_call

local ON = true

-- These keep what a token says of the last slot.
local slot_at, slot_cost, slot_text

function claim_cache.begin()
    slot_at, claim_cache.plain = nil, ';'
end

-- ---- Texts

-- Writes "@slot*cost", as a token says it.
function claim_cache.slot_text(at, c)
    if at ~= slot_at or c ~= slot_cost or not ON then
        local slots = cost.part(c)
        slot_at, slot_cost = at, c
        slot_text = slots == 1 and format('@%d', at) or format('@%d*%d', at, slots)
    end
    return slot_text
end

-- True when an entry holds a lock until its job starts. An entry that begins with claim_cache.plain does not: that is the head, or first byte, of
-- the last entry that was asked for.
function claim_cache.has_lock(entry)
    local attrs, at = heads.attrs_of(entry)
    if heads.attr(attrs, 'w') then return true end
    if ON then claim_cache.plain = sub(entry, 1, max(1, at - 1)) end
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
