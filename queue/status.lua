-- status: what there is, in numbers; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: JSON: {"now": "us", "queues": {queue: length}, "paused": {queue: "us", since when},
--        "types": {type: {"stats": {counter: text}, "parked": n, "held": bool}},
--        "workers": {id: {"info": JSON text, "until": "us", "running": n}}, "dead": n, "later": n}. Times are text: JSON numbers
--        here keep 14 digits.
--
-- uses: lane

local function pairs_of(list)
    local t = {}
    for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
    return t
end

local function type_of(name, queues)
    local t = {stats = pairs_of(call('HGETALL', P .. 'stats:' .. name)), parked = lane.parked(name), held = false}
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
    local reply = {now = us(now), queues = {}, paused = {}, types = {}, workers = {},
                   dead = call('ZCARD', P .. 'dead'), later = call('ZCARD', P .. 'later')}
    for _, queue in ipairs(queues) do
        reply.queues[queue] = call('LLEN', P .. 'queue:' .. queue)
        reply.paused[queue] = call('HGET', P .. 'halted', 'q/' .. queue) or nil
    end
    for _, name in ipairs(call('HKEYS', P .. 'types')) do reply.types[name] = type_of(name, queues) end
    local workers = call('ZRANGE', P .. 'workers', 0, -1, 'WITHSCORES')
    for i = 1, #workers, 2 do reply.workers[workers[i]] = worker_of(workers[i], workers[i + 1]) end
    return json_write(reply)
end

return status
