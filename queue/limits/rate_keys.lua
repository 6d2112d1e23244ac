-- rate_keys: the keys of a limit that have the most jobs parked, as far as they can be found with so many questions: the longest lanes (longest.lua),
-- and a sample of the others; who is paused; changes nothing.
--
-- ARGV: now, limit, most (keys, at most 100), key ('': the longest; else this one alone) [, the place where the last call ended: cursor among the
--       types ('-': all are known), jobs of those so far, 1: more types have lanes than are named, type, its jobs, ...]
-- role: viewer
-- reply: JSON: {"now": "us", "by": path of its keys, "parked": jobs of its types in lanes, "key_count": keys that have jobs there, about,
--        "sample": true: there are more keys than were looked at, "keys": [{"key", "gate": the first of its gates, "text": as jobs have it, "parked": jobs, "enqueued_at": "us", the
--        first of them, "next_start": "us", absent: when a job ends; "slots_left", "throttled_until": "us", 0: not, "paused": as reasons.pause has it, "own": its own rules, as key_rules.row}, ...],
--        "paused_keys": rows of key_pauses, the first of them, "paused_key_count": all of them, "own_key_count": keys that have rules of their own}
--        {"next": [cursor, ...]}: the place to go on from, while its types are looked for
--        {"missing": limit}
-- writes: nothing
-- uses: body gate heads key_pauses key_rules lane longest partition rates reasons rules slices stamp types

local KEYS_MOST = 100
local QUESTIONS = 1000  -- about a microsecond each
local TYPES_MOST = 50   -- with lanes
local USERS_MOST = 250  -- types of the limit that one call asks for their jobs, about
local SCAN = 100        -- of the lanes of a ring, and of gates that sleep in a queue
local PAUSED_MOST = 50

local left -- questions that may still be asked

local function ask(...)
    left = left - 1
    return call_safe(...)
end

-- What is found: lanes by name, keys by name and as a list; how many lanes there are about; is that all?
local function new_find() return {lanes = {}, keys = {}, list = {}, count = 0, whole = true} end

local function key_of(found, key)
    local k = found.keys[key]
    if k then return k end
    k = {key = key, jobs = 0, longest = 0}
    found.keys[key], found.list[#found.list + 1] = k, k
    return k
end

local function look(found, queue, kind, key)
    if left < 1 then
        found.whole = false
        return
    end
    local name = queue .. '/' .. kind .. '/' .. key
    if found.lanes[name] or key == '' then return end
    found.lanes[name] = true
    local n = ask('LLEN', P .. 'lane:' .. name)
    if type(n) ~= 'number' or n == 0 then return end
    local k = key_of(found, key)
    k.jobs = k.jobs + n
    if n > k.longest then k.longest, k.lane = n, name end
end

-- ---- Where its lanes are

local function by_jobs(a, b) return a.jobs > b.jobs end

-- What earlier calls have found of a limit's types: the cursor, those that have jobs in lanes, how many jobs, and are these all types? nil: it is no
-- such place.
local function read_place(ARGV)
    local cursor, jobs, kinds, known = ARGV[5] or '0', tonumber(ARGV[6] or 0), {}, {}
    if cursor ~= '-' and not find(cursor, '^%d+$') or not is_whole(jobs) then return nil end
    if #ARGV > 4 and #ARGV % 2 == 0 or #ARGV > 7 + 2 * TYPES_MOST then return nil end
    for i = 8, #ARGV, 2 do
        local n = tonumber(ARGV[i + 1])
        if not is_name(ARGV[i]) or not is_whole(n) then return nil end
        kinds[#kinds + 1], known[ARGV[i]] = {name = ARGV[i], jobs = n}, true
    end
    return {cursor = cursor, jobs = jobs, whole = ARGV[7] ~= '1', kinds = kinds, known = known}
end

local function write_place(place)
    local list = {place.cursor, us(place.jobs), place.whole and '0' or '1'}
    for _, kind in ipairs(place.kinds) do list[#list + 1], list[#list + 2] = kind.name, us(kind.jobs) end
    return list
end

-- A scan may find a type twice: one that is known is not counted again.
local function add_type(place, name)
    if place.known[name] then return end
    local n = lane.parked(name)
    place.known[name], place.jobs = true, place.jobs + n
    if n > 0 then place.kinds[#place.kinds + 1] = {name = name, jobs = n} end
end

-- Looks for more types that have jobs in lanes, and keeps those with the most. Returns whether keys may be looked for in this call: all types are
-- known, and few were looked at.
local function more_types(place, limit)
    if place.cursor == '-' then return true end
    local first, users, asked = place.cursor == '0', nil, 0
    users, place.cursor = rates.users_from(limit, place.cursor, USERS_MOST)
    for _, kind in ipairs(users) do
        for _, name in ipairs(kind.names) do add_type(place, name) end
        asked = asked + #kind.names
    end
    sort(place.kinds, by_jobs)
    place.whole = place.whole and #place.kinds <= TYPES_MOST
    for i = TYPES_MOST + 1, #place.kinds do place.kinds[i] = nil end
    if place.cursor == '0' then place.cursor = '-' end
    return place.cursor == '-' and first and asked <= USERS_MOST
end

-- Returns the queues of the type, those whose lanes are to run alone too, and whether these are all.
local function queues_of()
    local page = call('SSCAN', P .. 'queues', '0', 'COUNT', us(SCAN))
    return page[2], page[1] == '0'
end

-- The limits at whose gates lanes of these types may sleep.
local function siblings_of(kinds)
    local limits = {}
    for _, kind in ipairs(kinds) do
        for _, limit in ipairs(types.load(kind.name).limits) do limits[limit] = true end
    end
    return limits
end

-- ---- Finding lanes

local function look_at_longest(found, kinds)
    local most = max(10, floor(QUESTIONS / 4 / max(1, #kinds)))
    for _, kind in ipairs(kinds) do
        local members = ask('ZRANGE', P .. 'longest:' .. kind.name, '0', us(min(most, longest.MOST) - 1), 'REV')
        for _, member in ipairs(members.err and {} or members) do
            local lane_name, queue, key = longest.lane_of(kind.name, member)
            if lane_name then look(found, queue, kind.name, key) end
        end
    end
end

-- Lanes that are open by their key.
local function look_at_ring(found, queue, kind)
    local ring = P .. 'ring:' .. queue .. '/' .. kind
    local n = ask('ZCARD', ring)
    if type(n) ~= 'number' or n == 0 then return end
    found.count, found.whole = found.count + n, found.whole and n <= SCAN
    for _, key in ipairs(ask('ZRANGE', ring, '0', us(SCAN - 1))) do look(found, queue, kind, key) end
end

-- Lanes that sleep at the gates of their keys: some of them, and how many there are of these limits, about.
local function look_at_sleepers(found, queue, kinds, siblings)
    local sleep = P .. 'sleep:' .. queue
    local n = ask('ZCARD', sleep)
    if type(n) ~= 'number' or n == 0 then return end
    local page = ask('ZSCAN', sleep, '0', 'COUNT', us(SCAN))
    local seen, ours = #page[2] / 2, 0
    for i = 1, #page[2], 2 do
        local limit, key = match(page[2][i], '^([^#]+)#%d/(.+)$')
        if limit and siblings[limit] then
            ours = ours + 1
            for _, kind in ipairs(kinds) do look(found, queue, kind.name, key) end
        end
    end
    found.count, found.whole = found.count + floor(n * ours / max(1, seen) + 0.5), found.whole and page[1] == '0'
end

local function look_everywhere(found, kinds, queues)
    local siblings = siblings_of(kinds)
    look_at_longest(found, kinds)
    for _, queue in ipairs(queues) do
        if left < QUESTIONS / 4 then -- the others are for the keys that are shown
            found.whole = false
            return
        end
        for _, kind in ipairs(kinds) do look_at_ring(found, queue, kind.name) end
        look_at_sleepers(found, queue, kinds, siblings)
    end
end

-- Looks at all lanes of a key.
local function look_at_key(found, key, kinds, queues)
    for _, kind in ipairs(kinds) do
        if left < 1 then
            found.whole = false
            return
        end
        for _, queue in ipairs(queues) do look(found, queue, kind.name, key) end
    end
end

-- ---- What is said of a key

local function start_at(name, rule, cost)
    local g = gate.load_safe(name, rule)
    return g and gate.start(g, cost) or now
end

-- When the first job of a key may start, by all gates of its type: those of its lane; huge: when a job ends.
local function next_start(t, key, cost)
    local at = now
    for _, spec in ipairs(t.global) do at = max(at, spec.fixed or start_at(spec.name, spec.rule, cost)) end
    local keyed = types.keyed(t, key)
    for _, spec in ipairs(keyed) do at = max(at, spec.fixed or start_at(spec.name .. '/' .. key, spec.rule, cost)) end
    for _, pause in ipairs(t.paused) do at = max(at, rules.paused(pause.set)) end
    return at
end

-- Computes the next start of a key without jobs, by the rules of the limit.
local function next_start_of_limit(limit, set, key)
    local at, list, _, closed = max(now, rules.paused(set)), key_rules.list(limit, set, key)
    for _, rule in ipairs(set.global) do at = max(at, start_at(rates.gate_name(limit, rule), rule, 1)) end
    for _, rule in ipairs(list) do at = max(at, start_at(rates.gate_name(limit, rule) .. '/' .. key, rule, 1)) end
    return closed and huge or at
end

local function add_gates(row, limit, set, key)
    for _, rule in ipairs((key_rules.list(limit, set, key))) do
        local g = gate.load_safe(rates.gate_name(limit, rule) .. '/' .. key, rule)
        if g then
            local _, free = gate.figures(g, g.pause or nil)
            row.slots_left = min(row.slots_left or free, free)
            row.throttled_until = max(row.throttled_until or 0, g.pause or 0)
        end
    end
    row.paused = reasons.key(limit, key)
    row.throttled_until = us(not row.paused and row.throttled_until or 0)
    row.own = key_rules.row(key_rules.read(limit, key))
end

-- Adds what the first job of a key says: since when it waits, the key as it has it, and when it may start.
local function add_first(row, k, limit, set, load)
    local entry = k.lane and slices.read('LRANGE', P .. 'lane:' .. k.lane, 0, 1, load)[1]
    local t = entry and types.load(match(k.lane, '/([^/]+)/'))
    local at = t and next_start(t, k.key, types.job_cost(t, entry)) or next_start_of_limit(limit, set, k.key)
    row.next_start = at < huge and us(at) or nil
    if not entry then return end
    local at = stamp.since((heads.attrs_of(entry)))
    row.enqueued_at, row.text = at and us(at) or nil, body.shown_key(entry, set.path, k.key)
end

local function row_of(k, limit, set, load)
    local row = {key = k.key, parked = us(k.jobs), gate = rates.gate_name(limit, set.keyed[1]) .. '/' .. k.key}
    add_gates(row, limit, set, k.key)
    add_first(row, k, limit, set, load)
    return row
end

local function rows_of(found, most, limit, set)
    local rows, load = {}, slices.load()
    for i = 1, min(most, #found.list) do rows[i] = row_of(found.list[i], limit, set, load) end
    return rows
end

-- The longest so far are counted in all places, and are in order then.
local function complete(found, most, kinds, queues)
    sort(found.list, by_jobs)
    for i = 1, min(most, #found.list) do look_at_key(found, found.list[i].key, kinds, queues) end
    sort(found.list, by_jobs)
end

-- Keys that somebody has paused are there, with jobs or without.
local function add_paused(found, rows, kinds, queues, limit)
    for field in pairs(rows) do
        local key = sub(field, #limit + 2)
        key_of(found, key)
        look_at_key(found, key, kinds, queues)
    end
end

local function find_keys(found, place, ARGV, most, paused)
    local limit, key, kinds = ARGV[2], ARGV[4], place.kinds
    local queues, all_queues = queues_of()
    found.whole = place.whole and all_queues
    if key ~= '' then
        key_of(found, key)
        look_at_key(found, key, kinds, queues)
    elseif most > 0 then
        look_everywhere(found, kinds, queues)
        add_paused(found, paused, kinds, queues, limit)
        complete(found, most, kinds, queues)
    end
end

local function with_jobs(list)
    local n = 0
    for _, k in ipairs(list) do
        if k.jobs > 0 then n = n + 1 end
    end
    return n
end

local function rate_keys(ARGV)
    local limit, most, key = ARGV[2], tonumber(ARGV[3]), ARGV[4]
    local place = read_place(ARGV)
    if #ARGV < 4 or not is_name(limit) or not is_whole(most) or most > KEYS_MOST or key ~= '' and not rules.is_key(key) or not place then
        return refuse('rate_keys: wants now, limit, most, key, and a place or none')
    end
    local refusal = partition.refusal(limit)
    if refusal then return refusal end
    local text = call('HGET', P .. 'limits', limit)
    if not text then return answer{missing = limit} end
    local set = rules.read(text)
    if not set or not set.path then
        return refuse('limit %s: has no keys; set a rule with ,by=PATH, as in 10/s,by=args.customer', limit)
    end
    ARGV[4] = rules.key(set, key)
    if not more_types(place, limit) then return answer{next = write_place(place)} end
    local found, paused, paused_count = new_find(), key_pauses.rows(limit, PAUSED_MOST, reasons.key)
    left = QUESTIONS
    find_keys(found, place, ARGV, most, paused)
    return answer{now = us(now), by = set.path, parked = us(place.jobs), key_count = us(max(found.count, with_jobs(found.list))),
                  sample = not found.whole or nil, keys = rows_of(found, most, limit, set), paused_keys = paused,
                  paused_key_count = paused_count, own_key_count = us(key_rules.count(limit))}
end

return rate_keys
