-- queue_list: the names of the queues, and who serves them; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: [ now, [ queue, workers that serve it ], ... ]
-- writes: nothing
-- uses: paused

-- How many workers that are alive serve each queue.
local function servers()
    local counts = {}
    for _, worker in ipairs(call('ZRANGEBYSCORE', P .. 'workers', us(now), '+inf')) do
        local ok, info = pcall(json_read, call('HGET', P .. 'active:' .. worker, '@') or '')
        local queues = ok and type(info) == 'table' and info.queues
        for _, queue in ipairs(type(queues) == 'table' and queues or {}) do counts[queue] = (counts[queue] or 0) + 1 end
    end
    return counts
end

local function queue_list()
    local queues, counts, reply = paused.queues(), servers(), {us(now)}
    sort(queues)
    for _, queue in ipairs(queues) do reply[#reply + 1] = {queue, counts[queue] or 0} end
    return reply
end

return queue_list
