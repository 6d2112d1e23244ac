-- rate_list: the limits, the states of their gates and the types that they hold; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name ('' for all)
-- reply: [ now, gates at which lanes sleep, limits, types ], each by name:
--        limit: [ name, its text, state of gate #0, of gate #1, ... ]; the state is '' where there is none or it is keyed
--        type: [ name, cost, waiting, parked, held (0/1), limit, ... ]; without its limits' own it would be missing a gate
-- writes: nothing
-- uses: lane lease rates rules types

local function limit_row(name, text)
    local row, set = {name, text}, rules.read(text)
    for _, rule in ipairs(set or {}) do
        row[#row + 1] = not rule.by and call('GET', P .. 'gate:' .. rates.gate_name(name, rule)) or ''
    end
    return row
end

-- Jobs of a type in queues, as they were counted where they came in.
local function waiting(name)
    local s = call('HMGET', P .. 'stats:' .. name, 'enqueued', 'pulled', 'parked', 'dropped')
    for i = 1, 4 do s[i] = lease.counted(s[i]) end
    return max(0, s[1] - s[2] - s[3] - s[4])
end

local function type_row(name, held)
    local t = types.read(name)
    return rates.reply(t.limits, name, t.cost, waiting(name), lane.parked(name), held and 1 or 0)
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
    return {us(now), asleep, limits, kinds}
end

return rate_list
