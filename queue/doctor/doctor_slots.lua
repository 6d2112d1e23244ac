-- doctor_slots: does a gate that counts jobs in flight count what is leased: the leases of all workers whose tokens name it?
--
--   doctor_slots.count(workers) -> {gate name -> leases that name it}, leases in all; nil and how many, when they are too many for
--                                  one call. workers: others than those that are registered
--   doctor_slots.says(name)            -> how many jobs the gate says are in flight, and the rule to write it under; nil: it
--                                         cannot say, as it is none of concurrency and never was
--
-- uses: lease rules
local doctor_slots = {}

local LEASES_MOST = 10000 -- some 3 ms

local function all_workers(workers)
    local ids, known = call('ZRANGE', P .. 'workers', '0', '-1'), {}
    for _, id in ipairs(ids) do known[id] = true end
    for _, id in ipairs(workers) do
        if not known[id] then ids[#ids + 1] = id end
        known[id] = true
    end
    return ids
end

local counted -- in this call: {counts =, total =}

local function forget() counted = nil end

function doctor_slots.count(workers)
    if counted then return counted.counts, counted.total end
    at_next_call(forget)
    local counts, total, ids = {}, 0, all_workers(workers)
    for _, id in ipairs(ids) do total = total + call('HLEN', P .. 'active:' .. id) end
    counted = {total = total}
    if total > LEASES_MOST then return nil, total end
    for _, id in ipairs(ids) do
        for _, token in ipairs(call('HKEYS', P .. 'active:' .. id)) do
            if find(token, '~', 1, true) then
                for name in lease.gates_of(token) do counts[name] = (counts[name] or 0) + 1 end
            end
        end
    end
    counted.counts = counts
    return counts, total
end

-- The rule at that place of a limit.
local function rule_of(name)
    local limit, index = match(name, '^([^#]+)#(%d)')
    local set = limit and rules.read(call('HGET', P .. 'limits', limit) or '')
    return set and set[tonumber(index) + 1]
end

function doctor_slots.says(name)
    local state, rule = call('GET', P .. 'gate:' .. name), rule_of(name)
    local written, first, rest = match(state or '', '^%d+ %d+ %S+ %S+ (%S+) (%d+) ?(.*)$')
    local under = written and rules.one(written)
    if not under then return rule and rule.in_flight and 0 or nil, rule end
    local flight = under.in_flight and first or match(rest, '~(%d+)$')
    if not flight and not (rule and rule.in_flight) then return nil end
    return tonumber(flight or 0), rule or under
end

return doctor_slots
