-- rate_move: a type or a limit goes to live on another partition, with all types and limits that it shares limits with, so that it can share
-- one there. Their limits go with them: definition, weights, pauses. What is counted here stays here, so on the other partition their gates open
-- when those here would be as if never used. Jobs that wait here are sent after them by claims.
--
-- Which these are, and whether a batch keeps one of them here, is asked a page at a time, as there may be very many types and batches. Nothing is changed
-- before the last call, and that one is sure that what the others have found still holds:
--   types    what holds a type changes with the newest revision. Where that is another one than at the first page, all begins anew
--   batches  a type counts (`batched` of stats:<type>) when it comes into a batch that had no job of it, or back into one that had ended. Where a type
--            that is to move was counted since the first page of batches, these begin anew. So jobs of other types, and more jobs of batches that were
--            looked at, do not keep a move waiting
--
-- KEYS[1] prefix
-- ARGV: now, name, partition, what, by (for the log) [, the place where the last call ended: cursor among the types ('': all are looked at), revision, how
--       many names were known when this pass of the types began, cursor among the batches ('': all are looked at), sum of the counts of the types,
--       name that must move, ...]
-- role: operator
-- reply: JSON: {"moved": [name, ...], "asleep", "rest": as rate_wake has them, "closed_us": how long the last gate stays closed there,
--        "asks": [partition that is told where they are, ...]}; the jobs and the record for that partition are to be carried (away_read)
--        {"next": [place]}: nothing was changed: to be called again with this place
--        {}: it lives there
-- uses: away budget check gate key_pauses lease partition rates revisions rules types

local NAMES_MOST = 200
local TEXT_MOST = 256 * 1024 -- of a record
local PAGE = '100'           -- types or batches of one scan
local FEW = 150              -- looks of the first call that leave enough of it to move at once

-- ---- Where a call begins, and the next one

local PLACE = 6 -- of the arguments

-- {types = cursor, revision =, before = names when the pass began, batches = cursor, mark =, list = {name, ...}, found = {[name] = true}}.
local function place_new(name, revision)
    return {types = '0', revision = revision, before = 1, batches = '0', mark = '0', list = {name}, found = {[name] = true}}
end

-- nil: these are none.
local function place_read(ARGV)
    local place = place_new(ARGV[2], ARGV[PLACE + 1])
    if #ARGV < PLACE then return place end
    place.types, place.before, place.batches, place.mark = ARGV[PLACE], tonumber(ARGV[PLACE + 2]), ARGV[PLACE + 3], ARGV[PLACE + 4]
    for i = PLACE + 5, #ARGV do
        place.list[i - PLACE - 4], place.found[ARGV[i]] = ARGV[i], true
        if not is_name(ARGV[i]) then return nil end
    end
    local good = #ARGV >= PLACE + 5 and place.list[1] == ARGV[2] and find(place.types, '^%d*$') and find(place.batches, '^%d*$')
        and is_whole(place.before, 1) and place.before <= #place.list and is_whole(tonumber(place.mark))
    return good and place or nil
end

local function place_words(place)
    return {place.types, place.revision, us(place.before), place.batches, place.mark, unpack(place.list)}
end

-- ---- The names that must move

local function add_name(place, name)
    if not place.found[name] then place.found[name], place.list[#place.list + 1] = true, name end
end

local function is_any(list, found)
    for i = 1, #list do
        if found[list[i]] then return true end
    end
    return false
end

-- Adds a type, and the limits that it uses, where it is found or one of these is.
local function look_at_type(place, name, limits)
    if not limits or not (place.found[name] or is_any(limits, place.found)) then return end
    add_name(place, name)
    for i = 1, #limits do add_name(place, limits[i]) end
end

-- The limits that types of that text use; false: none.
local function used(text) return find(text, 'use=', 1, true) and types.parse('', text).use or false end

-- Adds what shares limits with the names that are known, as far as the call goes: passes over the types, until one has added nothing.
local function find_names(place)
    local uses = {}
    while place.types ~= '' and not budget.is_spent() and #place.list <= NAMES_MOST do
        local page = call('HSCAN', P .. 'types', place.types, 'COUNT', PAGE)
        for i = 1, #page[2], 2 do
            local text = page[2][i + 1]
            if uses[text] == nil then uses[text] = used(text) end
            look_at_type(place, page[2][i], uses[text])
        end
        place.types = page[1]
        if place.types == '0' then
            place.types = #place.list == place.before and '' or '0'
            place.before = #place.list
        end
        budget.spend(#page[2] / 4)
    end
end

-- ---- What must be so when they move

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

-- ---- The batches that keep one of them here

-- How often any of these types came into a batch.
local function marks(list)
    local sum = 0
    for i = 1, #list do
        local n = call_safe('HGET', P .. 'stats:' .. list[i], 'batched')
        sum = sum + lease.counted(type(n) == 'string' and n or nil)
    end
    budget.spend(#list / 2)
    return us(sum)
end

-- The first of the types in the text of a batch that is found, or "*"; false: none is.
local function type_among(text, found)
    for kind in text:gmatch('(%S+) %d+') do
        if found[kind] or kind == '*' then return kind end
    end
    return false
end

-- Why a batch keeps them here; nil: it does not.
local function wrong_of_batch(name, found, known)
    local b = call_safe('HMGET', P .. 'batch:' .. name, 'types', 'ended', 'cancel', 'total')
    local text = b[1]
    if b.err or not text or b[2] or b[3] or b[4] == '0' then return nil end
    if known[text] == nil then known[text] = type_among(text, found) end
    if not known[text] then return nil end
    return format('type %s: batch %s has jobs of it and has not ended; wait for its end (weir batch show %s), or cancel it',
                  known[text] == '*' and 'of several' or known[text], name, name)
end

-- Looks at batches, as far as the call goes. Returns why one keeps them here; nil: none of these.
local function look_at_batches(place)
    local known, mark = {}, marks(place.list)
    if mark ~= place.mark then place.mark, place.batches = mark, '0' end
    while place.batches ~= '' and not budget.is_spent() do
        local page = call('ZSCAN', P .. 'batches', place.batches, 'COUNT', PAGE)
        for i = 1, #page[2], 2 do
            local wrong = wrong_of_batch(page[2][i], place.found, known)
            if wrong then return wrong end
        end
        place.batches = page[1] ~= '0' and page[1] or ''
        budget.spend(#page[2] / 2)
    end
end

-- ---- What moves

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
    local weights = parts.weighted and rates.weights(name) or {}
    for i = 1, #weights, 2 do lines[#lines + 1] = format('weight %s/%s %s', name, weights[i], weights[i + 1]) end
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

-- Limits are gone from here, with all that belongs to them. Returns their names.
local function remove_limits(all)
    local names, gates, weighted, sets = {}, {}, {}, {}
    for _, one in ipairs(all) do
        if one.text then
            names[#names + 1] = one.name
            local weights = rates.split(one.text).weighted and rates.weights(one.name) or {}
            for i = 1, #weights, 2 do weighted[#weighted + 1] = one.name .. '/' .. weights[i] end
            sets[one.name] = one.set or false
            for i = 0, 7 do gates[#gates + 1] = P .. 'gate:' .. one.name .. '#' .. i end
        end
    end
    key_pauses.forget_all_of(sets)
    gate.save()
    push('HDEL', P .. 'weights', weighted)
    if #names > 0 then call('HDEL', P .. 'limits', unpack(names)) end
    if #gates > 0 then call('DEL', unpack(gates)) end
    return names
end

-- They have left; what waits at their gates is due. Returns the words for rate_wake; nil: none had a limit.
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
    local limits = remove_limits(all)
    return #limits > 0 and rates.wake_next(limits) or nil
end

local function wrong_keys(to)
    return rates.wrong_keys() or check.wrong_kind('homes', 'hash') or check.wrong_kind('about', 'hash')
        or check.wrong_kind('away:' .. us(to), 'list') or check.wrong_kind('batches', 'zset')
end

-- Goes on from a place, as far as the call goes: it may move them when both cursors are ''. Returns what is wrong; nil: nothing so far.
local function look_on(place)
    find_names(place)
    if #place.list > NAMES_MOST then return format('rate_move: %s shares limits with more than %d others', place.list[1], NAMES_MOST) end
    return place.types == '' and look_at_batches(place) or nil
end

local function rate_move(ARGV)
    local name, to, what, by = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
    local place = #ARGV >= 5 and is_name(name) and place_read(ARGV)
    if not place or not is_whole(to) or to >= partition.count() then
        return refuse('rate_move: wants now, name, partition, what, by, and a place or none')
    end
    local refusal = to ~= partition.own() and partition.refusal(name)
    if refusal then return refusal end
    if to == partition.own() then return answer{} end
    local wrong = wrong_keys(to)
    if wrong then return check.refuse_key(wrong) end
    budget.begin()
    local revision = us(revisions.newest())
    if place.revision ~= revision then place = place_new(name, revision) end
    local all_seen = place.types == '' and place.batches == ''
    wrong = look_on(place)
    if wrong then return refuse('%s', wrong) end
    local in_one = #ARGV < PLACE and budget.spent() <= FEW
    if place.types ~= '' or place.batches ~= '' or not (all_seen or in_one) then return answer{next = place_words(place)} end

    local list = place.list
    sort(list)
    local all = read_all(list)
    wrong = wrong_gates(all)
    if wrong then return check.refuse_key(wrong) end
    wrong = wrong_flight(all)
    if wrong then return refuse('%s', wrong) end
    local lines, closed = describe(all)
    if #concat(lines, '\n') > TEXT_MOST then return refuse('rate_move: limits of %s have too many weights and paused keys to move', name) end

    away.send_moves(to, lines)
    local asks = tell_first(list, to)
    return answer{moved = list, asleep = {}, rest = leave(all, to, what, by), closed_us = us(closed), asks = asks}
end

return rate_move
