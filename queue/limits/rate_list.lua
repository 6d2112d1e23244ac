-- rate_list: the limits, the states of their gates and the types that they hold, a page of them; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name ('' for all; '*' for all limits without types, held and asleep) [, what is walked, cursor: the place where the last call ended]
-- role: viewer
-- reply: JSON: {"now": us, "asleep": gates at which lanes sleep,
--        "limits": [{"name":, "rules": text, "gates": [state of gate #0, of gate #1, ...]}, ...]; a state is '' where there is none or the
--                  rule is keyed
--        "types": [{"name":, "cost":, "own_costs": claims noted that jobs of it name theirs, "waiting":, "parked":,
--                  "keyless": as rates.keyless tells it, "limits": [name, ...]}, ...]
--        "held": [a type that is held in some queue, ...]
--        "next": [what, cursor], the place to go on from; absent: that was all}
--        A row may come twice; asleep is a part of the sum.
-- writes: nothing
-- uses: lane lease rates rules types

local COUNT = '100'   -- asked of a scan, which may find some more
local SCANS_MOST = 3  -- of one call, so that a few of each need no second one; some 2 to 4 ms

local function limit_row(name, text)
    local gates = {}
    for i, rule in ipairs(rules.read(text) or {}) do
        gates[i] = not rule.by and call('GET', P .. 'gate:' .. rates.gate_name(name, rule)) or ''
    end
    return {name = name, rules = text, gates = gates}
end

-- text: as it stands in `types`. waiting: jobs in queues, as they were counted where they came in.
local function type_row(name, text)
    local t, counted = types.held_by(types.parse(name, text)), lease.counted
    local enqueued, pulled, parked, dropped, returned, served, keyless =
        unpack(call('HMGET', P .. 'stats:' .. name, 'enqueued', 'pulled', 'parked', 'dropped', 'returned', 'served', 'keyless'))
    return {name = name, cost = t.cost, own_costs = t.own_costs or false,
            waiting = max(0, counted(enqueued) - counted(pulled) - counted(parked) - counted(dropped)),
            parked = lane.parked_by(parked, returned, served), keyless = keyless and rates.keyless(name) or nil, limits = t.limits}
end

local ALONE = '*'

local take, after = {}, {limits = 'types', types = 'queues'}

function take.limits(reply, found)
    for i = 1, #found, 2 do reply.limits[#reply.limits + 1] = limit_row(found[i], found[i + 1]) end
end

function take.types(reply, found, only)
    for i = 1, #found, 2 do
        local name = found[i]
        if only == '' or only == name or rates.has(types.parse(name, found[i + 1]).use, only) then
            reply.types[#reply.types + 1] = type_row(name, found[i + 1])
        end
    end
end

function take.queues(reply, found)
    for name in pairs(rates.held(found)) do reply.held[#reply.held + 1] = name end
    for _, queue in ipairs(found) do reply.asleep = reply.asleep + call('ZCARD', P .. 'sleep:' .. queue) end
end

-- The next cursor, "0" at the end, and what was found.
local function scan(what, cursor, only)
    if what == 'queues' then return unpack(call('SSCAN', P .. 'queues', cursor, 'COUNT', COUNT)) end
    if what == 'types' then return unpack(call('HSCAN', P .. 'types', cursor, 'COUNT', COUNT)) end
    if only == '' or only == ALONE then return unpack(call('HSCAN', P .. 'limits', cursor, 'COUNT', COUNT)) end
    local text = call('HGET', P .. 'limits', only)
    return '0', text and {only, text} or {}
end

local function rate_list(ARGV)
    local only, what, cursor, found = ARGV[2], ARGV[3] or 'limits', ARGV[4] or '0'
    if not only or #ARGV == 3 or #ARGV > 4 or not take[what] or not find(cursor, '^%d+$') then
        return refuse('rate_list: wants now, name, perhaps what and cursor')
    end
    local reply = {now = us(now), asleep = 0, limits = {}, types = {}, held = {}}
    for _ = 1, SCANS_MOST do
        cursor, found = scan(what, cursor, only)
        take[what](reply, found, only)
        if cursor == '0' then what = only ~= ALONE and after[what] end
        if not what then return answer(reply) end
    end
    reply.next = {what, cursor}
    return answer(reply)
end

return rate_list
