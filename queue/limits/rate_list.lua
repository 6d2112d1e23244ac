-- rate_list: the limits, the states of their gates and the types that they hold; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name ('' for all)
-- reply: JSON: {"now": us, "asleep": gates at which lanes sleep,
--        "limits": [{"name":, "rules": text, "gates": [state of gate #0, of gate #1, ...]}, ...]; a state is '' where there is none or the
--                  rule is keyed
--        "types": [{"name":, "cost":, "waiting":, "parked":, "held": bool, "limits": [name, ...]}, ...]}
-- writes: nothing
-- uses: lane lease rates rules types

local function limit_row(name, text)
    local gates = {}
    for i, rule in ipairs(rules.read(text) or {}) do
        gates[i] = not rule.by and call('GET', P .. 'gate:' .. rates.gate_name(name, rule)) or ''
    end
    return {name = name, rules = text, gates = gates}
end

-- Jobs of a type in queues, as they were counted where they came in.
local function waiting(name)
    local s = call('HMGET', P .. 'stats:' .. name, 'enqueued', 'pulled', 'parked', 'dropped')
    for i = 1, 4 do s[i] = lease.counted(s[i]) end
    return max(0, s[1] - s[2] - s[3] - s[4])
end

local function type_row(name, held)
    local t = types.read(name)
    return {name = name, cost = t.cost, waiting = waiting(name), parked = lane.parked(name), held = held or false, limits = t.limits}
end

local function names_of_types(limit)
    if limit == '' then return call('HKEYS', P .. 'types') end
    local names = {}
    for _, t in ipairs(rates.users(limit)) do names[#names + 1] = t.name end
    return names
end

local function rate_list(ARGV)
    local only = ARGV[2]
    if not only or #ARGV > 2 then return refuse('rate_list: wants now, name') end
    local queues, asleep, limits, kinds = call('SMEMBERS', P .. 'queues'), 0, {}, {}
    local names = only ~= '' and {only} or call('HKEYS', P .. 'limits')
    for _, queue in ipairs(queues) do asleep = asleep + call('ZCARD', P .. 'sleep:' .. queue) end
    sort(names)
    for _, name in ipairs(names) do
        local text = call('HGET', P .. 'limits', name)
        if text then limits[#limits + 1] = limit_row(name, text) end
    end
    names = names_of_types(only)
    sort(names)
    local held = rates.held(queues)
    for _, name in ipairs(names) do kinds[#kinds + 1] = type_row(name, held[name]) end
    return answer{now = us(now), asleep = asleep, limits = limits, types = kinds}
end

return rate_list
