-- rate_move: a type or a limit goes to live on another partition, with all types and limits that it shares limits with, so that it can share
-- one there. Their limits go with them: definition, weights, pauses. What is counted here stays here, so on the other partition their gates open
-- when those here would be as if never used. Jobs that wait here are sent after them by claims.
--
-- KEYS[1] prefix
-- ARGV: now, name, partition, what, by (for the log)
-- role: operator
-- reply: JSON: {"moved": [name, ...], "asleep", "rest": as rate_wake has them, "closed_us": how long the last gate stays closed there,
--        "asks": [partition that is told where they are, ...]}; the jobs and the record for that partition are to be carried (away_read)
--        {}: it lives there
-- uses: away check gate key_pauses lease partition rates revisions rules types

local NAMES_MOST = 200
local TEXT_MOST = 256 * 1024 -- of a record
local BATCHES_MOST = 2000    -- looked at, the newest

-- The types that use limits, all in one question, as a scan takes twice as long: those that use the same are one kind, {limits =, names =}. Returns
-- the kind of each text, false where it names no limit, and the kinds of each limit.
local function read_users()
    local all, kinds, of_limit = call('HGETALL', P .. 'types'), {}, {}
    for i = 1, #all, 2 do
        local text = all[i + 1]
        local kind = kinds[text]
        if kind == nil then
            kind = find(text, 'use=', 1, true) and {limits = types.parse('', text).use, names = {}} or false
            kinds[text] = kind
            for _, limit in ipairs(kind and kind.limits or {}) do
                of_limit[limit] = of_limit[limit] or {}
                of_limit[limit][#of_limit[limit] + 1] = kind
            end
        end
        if kind then kind.names[#kind.names + 1] = all[i] end
    end
    return kinds, of_limit
end

-- All types and limits that must move with a name: a list, and the same as a set.
local function collect(name)
    local found, list, kinds, of_limit = {[name] = true}, {name}, read_users()
    local function add(other)
        if not found[other] then found[other], list[#list + 1] = true, other end
    end
    local i = 1
    while i <= #list and #list <= NAMES_MOST do
        local own = kinds[call('HGET', P .. 'types', list[i]) or '']
        for _, limit in ipairs(own and own.limits or {}) do add(limit) end
        for _, kind in ipairs(of_limit[list[i]] or {}) do
            for k = 1, min(#kind.names, NAMES_MOST + 1) do add(kind.names[k]) end
        end
        i = i + 1
    end
    sort(list)
    return list, found
end

-- What stands here of these names: {name =, type =, text = of its limit, set = the same, read; nil: it has none} each.
local function read_all(list)
    local texts, attributes, all = call('HMGET', P .. 'limits', unpack(list)), call('HMGET', P .. 'types', unpack(list)), {}
    for i, name in ipairs(list) do
        local text = texts[i] or nil
        all[i] = {name = name, type = types.parse(name, attributes[i] or ''), text = text, set = text and rules.read(text)}
    end
    return all
end

-- A name without a limit has no gates that matter.
local function wrong_gates(all)
    local wrong
    for _, one in ipairs(all) do wrong = wrong or one.text and rates.wrong_gates(one.name) end
    return wrong
end

-- Has any of their jobs a slot of what is counted in flight?
local function is_running(name)
    local s = call_safe('HMGET', P .. 'stats:' .. name, 'pulled', 'served', 'done', 'retried', 'dead', 'back')
    if s.err then return false end
    for i = 1, 6 do s[i] = lease.counted(s[i] or nil) end
    return s[1] + s[2] - s[3] - s[4] - s[5] - s[6] > 0
end

local function wrong_flight(all)
    local counts
    for _, one in ipairs(all) do
        if one.set and one.set.in_flight then counts = one.name end
    end
    for _, one in ipairs(counts and all or {}) do
        if is_running(one.name) then
            return format('type %s: its jobs run, and limit %s counts them here; pause it (weir rate pause %s 10m), wait for their end, try again',
                          one.name, counts, counts)
        end
    end
end

-- The first of the types in the text of a batch that is found, or "*"; false: none is.
local function type_among(text, found)
    for kind in text:gmatch('(%S+) %d+') do
        if found[kind] or kind == '*' then return kind end
    end
    return false
end

local function has_jobs(batch)
    local b = call('HMGET', P .. 'batch:' .. batch, 'ended', 'cancel', 'total')
    return not b[1] and not b[2] and b[3] ~= '0'
end

-- Why a batch keeps them here; nil: none does. All are looked at in the call that moves, as any may be given such jobs at any time: so each
-- is asked for its types only, and for more where they are among these.
local function wrong_batch(found)
    local known = {}
    for _, name in ipairs(call('ZRANGE', P .. 'batches', '0', us(BATCHES_MOST - 1), 'REV')) do
        local text = call_safe('HGET', P .. 'batch:' .. name, 'types')
        text = type(text) == 'string' and text or ''
        if known[text] == nil then known[text] = type_among(text, found) end
        if known[text] and has_jobs(name) then
            return format('type %s: batch %s has jobs of it and has not ended; wait for its end (weir batch show %s), or cancel it',
                          known[text] == '*' and 'of several' or known[text], name, name)
        end
    end
end

-- How long after now a used-up gate of a rule is as if never used.
local function longest(rule)
    local period = max(rule.period, rule.period * rule.burst / rule.count)
    if find(rule.text, '^sliding%-window') then period = 2 * period end
    return gate.AHEAD_MOST + ceil(period * 1000 / (rule.adapt_low or 1000))
end

local function closed_us(name, set)
    local till = set.pause_until and rules.paused(set) or now
    for _, rule in ipairs(set) do
        if rule.by then
            till = max(till, now + longest(rule))
        elseif not rule.in_flight then
            till = max(till, gate.resets(gate.load(rates.gate_name(name, rule), rule)))
        end
    end
    return till - now
end

-- The lines of a limit; returns how long its gates stay closed.
local function add_limit(name, text, set, lines)
    local parts, closed = rates.split(text), closed_us(name, set)
    lines[#lines + 1] = format('limit %s %d %s', name, closed, concat(parts.rules, ' ') .. (parts.weighted and ' weights:1' or ''))
    for _, line in ipairs(key_pauses.lines(name)) do lines[#lines + 1] = 'pause ' .. name .. '/' .. line end
    if not parts.weighted then return closed end
    local weights = call('HGETALL', P .. 'weights')
    for i = 1, #weights, 2 do
        if sub(weights[i], 1, #name + 1) == name .. '/' then lines[#lines + 1] = format('weight %s %s', weights[i], weights[i + 1]) end
    end
    return closed
end

-- The lines that say what leaves, and for how long its gates stay closed.
local function describe(all)
    local lines, closed = {}, 0
    for _, one in ipairs(all) do
        if one.set then closed = max(closed, add_limit(one.name, one.text, one.set, lines)) end
        lines[#lines + 1] = format('type %s %s', one.name, types.attributes(one.type))
    end
    return lines, closed
end

-- The partitions that are asked first for these names are told; returns which.
local function tell_first(list, to)
    local told, asks = {}, {}
    for _, name in ipairs(list) do
        local first = partition.first(name)
        if first ~= partition.own() and first ~= to then
            told[first] = told[first] or {}
            told[first][#told[first] + 1] = format('home %s %d', name, to)
        end
    end
    for first, lines in pairs(told) do
        away.send_moves(first, lines)
        asks[#asks + 1] = first
    end
    return asks
end

-- Limits are gone from here, with all that belongs to them. Returns their names, and whether any had weights.
local function remove_limits(all)
    local names, gates, weighted = {}, {}, false
    for _, one in ipairs(all) do
        if one.text then
            names[#names + 1] = one.name
            if rates.split(one.text).weighted then
                weighted = true
                rates.forget_weights(one.name)
            end
            key_pauses.forget_all(one.name, one.set)
            for i = 0, 7 do gates[#gates + 1] = P .. 'gate:' .. one.name .. '#' .. i end
        end
    end
    gate.save()
    if #names > 0 then call('HDEL', P .. 'limits', unpack(names)) end
    if #gates > 0 then call('DEL', unpack(gates)) end
    return names, weighted
end

-- They have left; what waits at their gates is due. Returns whether any had a limit.
local function leave(all, to, what, by)
    local homes, attributes, renewed = {}, {}, {}
    for _, one in ipairs(all) do
        homes[#homes + 1], homes[#homes + 2] = one.name, us(to)
        renewed[#renewed + 1] = 'home/' .. one.name
        if #one.type.use > 0 or one.type.cost ~= 1 then
            one.type.use, one.type.cost = {}, 1
            attributes[#attributes + 1], attributes[#attributes + 2] = one.name, types.text(one.type)
            renewed[#renewed + 1] = 'type/' .. one.name
        end
        if one.text then renewed[#renewed + 1] = 'limit/' .. one.name end
    end
    push('HSET', P .. 'homes', homes)
    push('HSET', P .. 'types', attributes)
    revisions.renew_all(renewed)
    if #renewed > #all then rates.log(what, by) end
    local limits, weighted = remove_limits(all)
    for _, one in ipairs(weighted and all or {}) do rates.forget_shares(one.name) end
    if #limits > 0 then rates.wake(limits) end
    return #limits > 0
end

local function rate_move(ARGV)
    local name, to, what, by = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
    if #ARGV ~= 5 or not is_name(name) or not is_whole(to) or to >= partition.count() then
        return refuse('rate_move: wants now, name, partition, what, by')
    end
    local refusal = to ~= partition.own() and partition.refusal(name)
    if refusal then return refusal end
    if to == partition.own() then return answer{} end
    local wrong = rates.wrong_keys() or check.wrong_kind('homes', 'hash') or check.wrong_kind('about', 'hash')
        or check.wrong_kind('away:' .. us(to), 'list') or check.wrong_kind('batches', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local list, found = collect(name)
    if #list > NAMES_MOST then return refuse('rate_move: %s shares limits with more than %d others', name, NAMES_MOST) end
    local all = read_all(list)
    wrong = wrong_gates(all)
    if wrong then return check.refuse_key(wrong) end
    wrong = wrong_flight(all) or wrong_batch(found)
    if wrong then return refuse('%s', wrong) end
    local lines, closed = describe(all)
    if #concat(lines, '\n') > TEXT_MOST then return refuse('rate_move: limits of %s have too many weights and paused keys to move', name) end

    away.send_moves(to, lines)
    local asks, asleep, rest = tell_first(list, to), {}, nil
    if leave(all, to, what, by) then asleep, rest = rates.look_on('0', '', {}) end
    return answer{moved = list, asleep = asleep, rest = rest, closed_us = us(closed), asks = asks}
end

return rate_move
