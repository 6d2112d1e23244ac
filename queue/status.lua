-- status: what there is, in numbers; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: JSON: {"now": "us", "queues": {queue: length}, "types": {type: {"stats": {counter: text}, "parked": n, "held": bool,
--        "rule": stored rule or "", "tat": "us", "rem": "1/count us", "opens": "us"}}, "workers": {id: {"info": JSON text,
--        "until": "us", "running": n}}, "dead": n, "later": n}. Times are text: JSON numbers here keep 14 digits.
-- uses: core/base.lua core/now.lua throttle/gate.lua

local function pairs_of(list)
    local t = {}
    for i = 1, #list, 2 do t[list[i]] = list[i + 1] end
    return t
end

local queues = call('SMEMBERS', P .. 'queues')

local function type_of(name)
    local t = {stats = pairs_of(call('HGETALL', P .. 'stats:' .. name)), parked = 0, held = false, tat = '0', rem = '0', opens = '0'}
    for _, queue in ipairs(queues) do
        t.parked = t.parked + call('LLEN', P .. 'lane:' .. queue .. '/' .. name .. '/')
        if call('ZSCORE', P .. 'held:' .. queue, name) then t.held = true end
    end
    t.rule = call('HGET', P .. 'limits', name) or ''
    local gate = t.rule ~= '' and gate_load(name .. '#0', t.rule)
    if gate then
        t.tat, t.rem, t.opens = us(gate.tat_us), us(gate.tat_rem), us(gate_start(gate, 1))
    end
    return t
end

local reply = {now = us(now), queues = {}, types = {}, workers = {},
               dead = call('ZCARD', P .. 'dead'), later = call('ZCARD', P .. 'later')}
for _, queue in ipairs(queues) do reply.queues[queue] = call('LLEN', P .. 'queue:' .. queue) end
for _, name in ipairs(call('HKEYS', P .. 'types')) do reply.types[name] = type_of(name) end
local workers = call('ZRANGE', P .. 'workers', 0, -1, 'WITHSCORES')
for i = 1, #workers, 2 do
    local active = P .. 'active:' .. workers[i]
    reply.workers[workers[i]] = {info = call('HGET', active, '@') or '', ['until'] = us(tonumber(workers[i + 1])),
                                 running = max(0, call('HLEN', active) - 1)}
end
return cjson.encode(reply)
