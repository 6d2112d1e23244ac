-- rate_list: the limits, the states of their gates and the types that they hold, a page of them; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name ('' for all; '*' for all limits without types, held and asleep) [, what is walked, cursor: the place where the last call ended,
--       values that a scan has found and that were not taken, ...]
-- role: viewer
-- reply: JSON: {"now": us, "asleep": gates at which lanes sleep,
--        "limits": n: the first n strings of raw are limits
--        "types": [{"name":, "cost":, "own_costs": claims noted that jobs of it name theirs, "waiting":, "parked":,
--                  "keyless": as rates.keyless tells it, "limits": [name, ...]}, ...]
--        "held": [a type that is held in some queue, ...]
--        "next": [what, cursor, ...], the place to go on from; absent: that was all},
--        raw: of each limit its lines: name, rules, state of gate #0, of gate #1, ...; a state is '' where there is none or the rule is keyed,
--        '?' where it is no line. Who reads it would need three times as long for JSON
--        A row may come twice; asleep is a part of the sum.
-- writes: nothing
-- uses: counters lane rates rules time_budget types

local COUNT = '100'   -- asked of a scan, which may find some more
local VALUES = {limits = 2, types = 2, queues = 1} -- of a scan that are one thing

local function line(text) return find(text, '%c') and '?' or text end

local function limit_row(name, text)
    local lines = {line(name), line(text)}
    for i, rule in ipairs(rules.read(text) or {}) do
        time_budget.spend(1)
        lines[i + 2] = not rule.by and line(call('GET', P .. 'gate:' .. rates.gate_name(name, rule)) or '') or ''
    end
    return concat(lines, '\n')
end

-- text: as it stands in `types`. waiting: jobs in queues, as they were counted where they came in.
local function type_row(name, text)
    local t, counted = types.held_by(types.parse(name, text)), counters.number
    local enqueued, pulled, parked, dropped, returned, served, keyless =
        unpack(call('HMGET', P .. 'stats:' .. name, 'enqueued', 'pulled', 'parked', 'dropped', 'returned', 'served', 'keyless'))
    return {name = name, cost = t.cost, own_costs = t.own_costs or false,
            waiting = max(0, counted(enqueued) - counted(pulled) - counted(parked) - counted(dropped)),
            parked = lane.parked_by(parked, returned, served), keyless = keyless and rates.keyless(name) or nil, limits = t.limits}
end

local ALONE = '*'

local take, after = {}, {limits = 'types', types = 'queues'}

function take.limits(name, text, reply)
    time_budget.spend(1)
    reply.raw[#reply.raw + 1] = limit_row(name, text)
end

function take.types(name, text, reply, only)
    time_budget.spend(1)
    if only == '' or only == name or rates.has(types.parse(name, text).use, only) then
        time_budget.spend(4)
        reply.types[#reply.types + 1] = type_row(name, text)
    end
end

function take.queues(queue, _, reply)
    local before = #reply.held
    for name in pairs(rates.held{queue}) do reply.held[#reply.held + 1] = name end
    reply.asleep = reply.asleep + call('ZCARD', P .. 'sleep:' .. queue)
    time_budget.spend(2 + (#reply.held - before) / 10)
end

-- The next cursor, "0" at the end, and what was found.
local function scan(what, cursor, only)
    if what == 'queues' then return unpack(call('SSCAN', P .. 'queues', cursor, 'COUNT', COUNT)) end
    if what == 'types' then return unpack(call('HSCAN', P .. 'types', cursor, 'COUNT', COUNT)) end
    if only == '' or only == ALONE then return unpack(call('HSCAN', P .. 'limits', cursor, 'COUNT', COUNT)) end
    local text = call('HGET', P .. 'limits', only)
    return '0', text and {only, text} or {}
end

local function say(reply, next_place)
    local raw = reply.raw
    reply.limits, reply.next, reply.raw = #raw, next_place, nil
    return answer(reply, raw)
end

local function rate_list(ARGV)
    local only, what, cursor, found = ARGV[2], ARGV[3] or 'limits', ARGV[4] or '0', time_budget.rest({}, ARGV, 5)
    if not only or #ARGV == 3 or not take[what] or not find(cursor, '^%d+$') or #found % VALUES[what] ~= 0 then
        return refuse('rate_list: wants now, name, perhaps what, cursor, what was found')
    end
    local reply = {now = us(now), asleep = 0, raw = {}, types = {}, held = {}}
    time_budget.begin()
    repeat
        if #found == 0 then cursor, found = scan(what, cursor, only) end
        local left = time_budget.take(found, VALUES[what], take[what], reply, only)
        if left then return say(reply, time_budget.rest({what, cursor}, found, left)) end
        found = {}
        if cursor == '0' then what = only ~= ALONE and after[what] end
    until not what or time_budget.is_spent()
    return say(reply, what and {what, cursor} or nil)
end

return rate_list
