-- doctor_slots: does a gate that counts jobs in flight count what is leased: the leases of all workers whose tokens name it, and the holds?
--
--   doctor_slots.count()    -> {gate name -> leases that name it}; nil and how many leases there are, when they are too many for one call
--   doctor_slots.says(name) -> how many jobs the gate says are in flight, and the rule to write it under; nil: it cannot say, as it is
--                              none of concurrency and never was
--
-- uses: holds lease rules
local doctor_slots = {}

local LEASES_MOST = 10000 -- some 3 ms

local counts, total -- in this call

local function forget() counts, total = nil, nil end

local function add(counted, id)
    for _, token in ipairs(call('HKEYS', P .. 'active:' .. id)) do
        if find(token, '~', 1, true) then
            for name in lease.gates_of(token) do counted[name] = (counted[name] or 0) + 1 end
        end
    end
end

local function add_holds(counted)
    for _, token in ipairs(call('ZRANGE', P .. 'holds', '0', '-1')) do
        for name in lease.gates_of(holds.gates(token)) do counted[name] = (counted[name] or 0) + 1 end
    end
end

function doctor_slots.count()
    if total then return counts, total end
    at_next_call(forget)
    local ids = call('ZRANGE', P .. 'workers', '0', '-1')
    total = 0
    for _, id in ipairs(ids) do total = total + call('HLEN', P .. 'active:' .. id) end
    total = total + call('ZCARD', P .. 'holds')
    if total > LEASES_MOST then return nil, total end
    counts = {}
    for _, id in ipairs(ids) do add(counts, id) end
    add_holds(counts)
    return counts, total
end

-- The rule at that place of a limit.
local function rule_of(name)
    local limit, index = match(name, '^([^#]+)#(%d)')
    local set = limit and rules.read(call('HGET', P .. 'limits', limit) or '')
    return set and rules.at(set, tonumber(index))
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
