-- status: what there is, in numbers; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: JSON: {"now": "us", "queues": {queue: length}, "paused": {queue: "us", as paused.since tells it},
--        "types": {type: {"stats": {counter: text}, "parked": n, "held": bool, "own_costs": bool}},
--        "workers": {id: {"info": JSON text, "until": "us", "running": n}}, "dead": n, "later": n}. Times are text: JSON numbers
--        here keep 14 digits. own_costs: jobs of it name their cost, by what claims noted and by the first jobs of the queues
--
-- uses: lane paused types

local LOOKED_AT, PAGE = 100, 10 -- jobs of each queue, so many at a time
local BYTES_MOST = 1048576      -- of all queues: no more pages are read then

local function pairs_of(list)
    local t = {}
    for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
    return t
end

-- Adds the types of entries that seem to name their cost; returns the bytes of all.
local function note_costs(entries, costed)
    local bytes = 0
    for _, entry in ipairs(entries) do
        bytes = bytes + #entry
        local name = find(entry, '"cost"', 1, true) and match(entry, '"type"%s*:%s*"([%w_.-]+)"')
        if name then costed[name] = true end
    end
    return bytes
end

-- The types of jobs that no claim has looked at yet and that seem to name their cost.
local function costed_types(queues)
    local costed, bytes = {}, 0
    for _, queue in ipairs(queues) do
        for first = 0, LOOKED_AT - PAGE, PAGE do
            if bytes > BYTES_MOST then return costed end
            local entries = call('LRANGE', P .. 'queue:' .. queue, digits(first), digits(first + PAGE - 1))
            bytes = bytes + note_costs(entries, costed)
            if #entries < PAGE then break end
        end
    end
    return costed
end

local function type_of(name, text, queues, costed)
    local t = {stats = pairs_of(call('HGETALL', P .. 'stats:' .. name)), parked = lane.parked(name), held = false,
               own_costs = costed[name] or types.parse(name, text).own_costs or false}
    for _, queue in ipairs(queues) do
        if call('ZSCORE', P .. 'held:' .. queue, name) then t.held = true end
    end
    return t
end

local function worker_of(id, deadline)
    local active = P .. 'active:' .. id
    return {info = call('HGET', active, '@') or '', ['until'] = us(tonumber(deadline)), running = max(0, call('HLEN', active) - 1)}
end

local function status()
    local queues = call('SMEMBERS', P .. 'queues')
    local costed = costed_types(queues)
    local reply = {now = us(now), queues = {}, paused = {}, types = {}, workers = {},
                   dead = call('ZCARD', P .. 'dead'), later = call('ZCARD', P .. 'later')}
    for _, queue in ipairs(queues) do
        reply.queues[queue] = call('LLEN', P .. 'queue:' .. queue)
        local since = paused.since(queue)
        reply.paused[queue] = since ~= '' and since or nil
    end
    for name, text in pairs(pairs_of(call('HGETALL', P .. 'types'))) do reply.types[name] = type_of(name, text, queues, costed) end
    local workers = call('ZRANGE', P .. 'workers', 0, -1, 'WITHSCORES')
    for i = 1, #workers, 2 do reply.workers[workers[i]] = worker_of(workers[i], workers[i + 1]) end
    return json_write(reply)
end

return status
