-- status: what there is, in numbers; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- role: viewer
-- reply: JSON: {"now": "us", "queues": {queue: length}, "paused": {queue: "us", as paused.since tells it},
--        "types": {type: {"stats": {counter: text}, "parked": n, "held": bool, "own_costs": bool,
--                  "queues": [queue, ...], "in_pause": bool, "keyless": as rates.keyless tells it}},
--        "workers": {id: {"info": JSON text, "until": "us", "running": n}}, "dead": n, "dead_bytes": text (-1: not all counted yet), "later": n}. Times are text: JSON numbers
--        here keep 14 digits. own_costs: jobs of it name their cost, by what claims noted and by the first jobs of the queues;
--        queues: where it is among those; in_pause: jobs of it may stand in a queue that is paused
--
-- writes: nothing
-- uses: dead_bytes lane paused rates slices types

local LOOKED_AT = 100  -- jobs of each queue, as far as slices.BYTES go for all queues
local PAUSED_MOST = 20 -- paused queues whose lanes are looked at for each type that has any; more: it may be in one

local function pairs_of(list)
    local t = {}
    for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
    return t
end

-- Looks at the first jobs of a queue. found: {load =, types = {type -> {own_costs =, queues =}}, paused = {queue,
-- ...}, paused_more =}; more: there are jobs behind them that were not looked at.
local function look(queue, length, found)
    local here, entries = {}, {}
    if length > 0 then entries = slices.read('LRANGE', P .. 'queue:' .. queue, 0, LOOKED_AT, found.load) end
    for _, entry in ipairs(entries) do
        local name = match(entry, '"type"%s*:%s*"([%w_.-]+)"')
        if name then
            local t = found.types[name] or {own_costs = false, queues = {}}
            t.own_costs = t.own_costs or find(entry, '"cost"', 1, true) ~= nil
            if not here[name] then t.queues[#t.queues + 1] = queue end
            found.types[name], here[name] = t, true
        end
    end
    return #entries < length
end

-- Notes that a queue is paused; more: jobs stand there that were not looked at.
local function note_pause(queue, found, more)
    found.paused[#found.paused + 1], found.paused[queue] = queue, true
    found.paused_more = found.paused_more or more
end

-- May jobs of a type, so many of them in lanes, stand in a queue that is paused?
local function in_pause(name, parked, found)
    if #found.paused == 0 then return false end
    for _, queue in ipairs(found.types[name] and found.types[name].queues or {}) do
        if found.paused[queue] then return true end
    end
    if found.paused_more or parked > 0 and #found.paused > PAUSED_MOST then return true end
    for i = 1, parked > 0 and #found.paused or 0 do
        local queue = found.paused[i]
        if call('EXISTS', P .. 'ring:' .. queue .. '/' .. name, P .. 'sleep:' .. queue) > 0 then return true end
    end
    return false
end

local function type_of(name, text, held, found)
    local seen, parked = found.types[name] or {queues = {}}, lane.parked(name)
    return {stats = pairs_of(call('HGETALL', P .. 'stats:' .. name)), parked = parked, held = held or false,
            own_costs = types.parse(name, text).own_costs or seen.own_costs or false, queues = seen.queues[1] and seen.queues, in_pause = in_pause(name, parked, found),
            keyless = rates.keyless(name)}
end

local function worker_of(id, deadline)
    local active = P .. 'active:' .. id
    return {info = call('HGET', active, '@') or '', ['until'] = us(tonumber(deadline)), running = max(0, call('HLEN', active) - 1)}
end

local function status()
    local queues, found = paused.queues(), {load = slices.load(), types = {}, paused = {}}
    local reply = {now = us(now), queues = {}, paused = {}, types = {}, workers = {},
                   dead = call('ZCARD', P .. 'dead'), dead_bytes = us(dead_bytes.read() or -1), later = call('ZCARD', P .. 'later')}
    for _, queue in ipairs(queues) do
        local length = call('LLEN', P .. 'queue:' .. queue)
        local more, since = look(queue, length, found), paused.since(queue)
        reply.queues[queue] = length
        if since ~= '' then
            reply.paused[queue] = since
            note_pause(queue, found, more)
        end
    end
    local held = rates.held(queues)
    for name, text in pairs(pairs_of(call('HGETALL', P .. 'types'))) do
        if is_name(name) then reply.types[name] = type_of(name, text, held[name], found) end
    end
    local workers = call('ZRANGE', P .. 'workers', 0, -1, 'WITHSCORES')
    for i = 1, #workers, 2 do
        if is_name(workers[i]) then reply.workers[workers[i]] = worker_of(workers[i], workers[i + 1]) end
    end
    return answer(reply)
end

return status
