-- status: what there is, in numbers; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: JSON: {"now": "us", "queues": {queue: length}, "paused": {queue: "us", as paused.since tells it},
--        "types": {type: {"stats": {counter: text}, "parked": n, "held": bool, "own_costs": bool, "looked_at": n, "more": bool,
--                  "keyless": as rates.keyless tells it}},
--        "workers": {id: {"info": JSON text, "until": "us", "running": n}}, "dead": n, "later": n}. Times are text: JSON numbers
--        here keep 14 digits. own_costs: jobs of it name their cost, by what claims noted and by the first jobs of the queues;
--        looked_at: how many of it are among those; more: where it was found, jobs stand behind that were not looked at
--
-- uses: lane paused rates types

local LOOKED_AT, PAGE = 100, 10 -- jobs of each queue, so many at a time
local BYTES_MOST = 1048576      -- of all queues: no more pages are read then

local function pairs_of(list)
    local t = {}
    for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
    return t
end

-- Looks at the first jobs of a queue. found: {bytes =, types = {type -> {looked_at =, own_costs =, more =}}}; more: there
-- are jobs behind them that were not looked at.
local function look(queue, length, found)
    local here, looked_at = {}, 0
    while looked_at < min(length, LOOKED_AT) and found.bytes <= BYTES_MOST do
        for _, entry in ipairs(call('LRANGE', P .. 'queue:' .. queue, digits(looked_at), digits(looked_at + PAGE - 1))) do
            local name = match(entry, '"type"%s*:%s*"([%w_.-]+)"')
            if name then
                local t = found.types[name] or {looked_at = 0, own_costs = false, more = false}
                t.looked_at = t.looked_at + 1
                t.own_costs = t.own_costs or find(entry, '"cost"', 1, true) ~= nil
                found.types[name], here[name] = t, t
            end
            found.bytes = found.bytes + #entry
        end
        looked_at = looked_at + PAGE
    end
    if looked_at >= length then return end
    for _, t in pairs(here) do t.more = true end
end

local function type_of(name, text, held, found)
    return {stats = pairs_of(call('HGETALL', P .. 'stats:' .. name)), parked = lane.parked(name), held = held or false,
            own_costs = types.parse(name, text).own_costs or found and found.own_costs or false,
            looked_at = found and found.looked_at or 0, more = found and found.more or false, keyless = rates.keyless(name)}
end

local function worker_of(id, deadline)
    local active = P .. 'active:' .. id
    return {info = call('HGET', active, '@') or '', ['until'] = us(tonumber(deadline)), running = max(0, call('HLEN', active) - 1)}
end

local function status()
    local queues, found = paused.queues(), {bytes = 0, types = {}}
    local reply = {now = us(now), queues = {}, paused = {}, types = {}, workers = {},
                   dead = call('ZCARD', P .. 'dead'), later = call('ZCARD', P .. 'later')}
    for _, queue in ipairs(queues) do
        local length = call('LLEN', P .. 'queue:' .. queue)
        look(queue, length, found)
        reply.queues[queue] = length
        local since = paused.since(queue)
        reply.paused[queue] = since ~= '' and since or nil
    end
    local held = rates.held(queues)
    for name, text in pairs(pairs_of(call('HGETALL', P .. 'types'))) do
        if is_name(name) then reply.types[name] = type_of(name, text, held[name], found.types[name]) end
    end
    local workers = call('ZRANGE', P .. 'workers', 0, -1, 'WITHSCORES')
    for i = 1, #workers, 2 do
        if is_name(workers[i]) then reply.workers[workers[i]] = worker_of(workers[i], workers[i + 1]) end
    end
    return (json_write(reply):gsub('[\128-\255]', '?')) -- whatever stands there: it must be UTF-8
end

return status
