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

-- The types that use limits: {limits =, names =} for all that use the same.
local function read_users()
    local kinds, known, cursor = {}, {}, '0'
    repeat
        local page = call('HSCAN', P .. 'types', cursor, 'COUNT', '1000')
        for i = 1, #page[2], 2 do
            local text = page[2][i + 1]
            local kind = known[text]
            if kind == nil then
                kind = find(text, 'use=', 1, true) and {limits = types.parse('', text).use, names = {}} or false
                known[text], kinds[#kinds + 1] = kind, kind or nil
            end
            if kind then kind.names[#kind.names + 1] = page[2][i] end
        end
        cursor = page[1]
    until cursor == '0'
    return kinds
end

-- All types and limits that must move with a name: a list, and the same as a set.
local function collect(name)
    local found, list, kinds = {[name] = true}, {name}, read_users()
    local function add(other)
        if not found[other] then found[other], list[#list + 1] = true, other end
    end
    local i = 1
    while i <= #list and #list <= NAMES_MOST do
        for _, limit in ipairs(types.read(list[i]).use) do add(limit) end
        for _, kind in ipairs(kinds) do
            local uses = rates.has(kind.limits, list[i])
            for k = 1, uses and min(#kind.names, NAMES_MOST + 1) or 0 do add(kind.names[k]) end
        end
        i = i + 1
    end
    sort(list)
    return list, found
end

-- Has any of their jobs a slot of what is counted in flight?
local function is_running(name)
    local s = call_safe('HMGET', P .. 'stats:' .. name, 'pulled', 'served', 'done', 'retried', 'dead', 'back')
    if s.err then return false end
    for i = 1, 6 do s[i] = lease.counted(s[i] or nil) end
    return s[1] + s[2] - s[3] - s[4] - s[5] - s[6] > 0
end

local function wrong_flight(list)
    local counts
    for _, name in ipairs(list) do
        local set = rules.read(call('HGET', P .. 'limits', name) or '')
        if set and set.in_flight then counts = name end
    end
    for _, name in ipairs(counts and list or {}) do
        if is_running(name) then
            return format('type %s: its jobs run, and limit %s counts them here; pause it (weir rate pause %s 10m), wait for their end, try again',
                          name, counts, counts)
        end
    end
end

-- Why a batch keeps them here; nil: none does.
local function wrong_batch(found)
    for _, name in ipairs(call('ZRANGE', P .. 'batches', '0', us(BATCHES_MOST - 1), 'REV')) do
        local b = call_safe('HMGET', P .. 'batch:' .. name, 'ended', 'cancel', 'types', 'total')
        for kind in (not b.err and not b[1] and not b[2] and b[4] ~= '0' and b[3] or ''):gmatch('(%S+) %d+') do
            if found[kind] or kind == '*' then
                return format('type %s: batch %s has jobs of it and has not ended; wait for its end (weir batch show %s), or cancel it',
                              kind == '*' and 'of several' or kind, name, name)
            end
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
local function add_limit(name, lines)
    local text = call('HGET', P .. 'limits', name)
    local set = text and rules.read(text)
    if not set then return 0 end
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
local function describe(list)
    local lines, closed = {}, 0
    for _, name in ipairs(list) do
        closed = max(closed, add_limit(name, lines))
        lines[#lines + 1] = format('type %s %s', name, types.attributes(types.read(name)))
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

-- They have left; what waits at their gates is due. Returns whether any had a limit.
local function leave(list, to, what, by)
    local limits, weighted = {}, false
    for _, name in ipairs(list) do
        call('HSET', P .. 'homes', name, us(to))
        revisions.renew('home', name)
        local t = types.parse(name, call('HGET', P .. 'types', name) or '')
        local text = call('HGET', P .. 'limits', name)
        if #t.use > 0 or t.cost ~= 1 then
            t.use, t.cost = {}, 1
            types.write(t)
            rates.record(what, by, 'type', name)
        end
        if text then
            if rates.split(text).weighted then
                weighted = true
                rates.forget_weights(name)
            end
            key_pauses.forget_all(name, rules.read(text))
            gate.save()
            call('HDEL', P .. 'limits', name)
            for i = 0, 7 do call('DEL', P .. 'gate:' .. name .. '#' .. i) end
            rates.record(what, by, 'limit', name)
            limits[#limits + 1] = name
        end
    end
    for _, name in ipairs(weighted and list or {}) do rates.forget_shares(name) end
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
    for _, other in ipairs(list) do wrong = wrong or rates.wrong_gates(other) end
    if wrong then return check.refuse_key(wrong) end
    wrong = wrong_flight(list) or wrong_batch(found)
    if wrong then return refuse('%s', wrong) end
    local lines, closed = describe(list)
    if #concat(lines, '\n') > TEXT_MOST then return refuse('rate_move: limits of %s have too many weights and paused keys to move', name) end

    away.send_moves(to, lines)
    local asks, asleep, rest = tell_first(list, to), {}, nil
    if leave(list, to, what, by) then asleep, rest = rates.look_on('0', '', {}) end
    return answer{moved = list, asleep = asleep, rest = rest, closed_us = us(closed), asks = asks}
end

return rate_move
