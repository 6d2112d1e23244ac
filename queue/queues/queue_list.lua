-- queue_list: the names of the queues, and who serves them; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- role: viewer
-- reply: JSON: {"queues": [{"name", "worker_count": workers that serve it}, ...]}
-- writes: nothing
-- uses: paused pattern registry

local function has_pattern(words)
    for _, word in ipairs(words) do
        if pattern.is(word) then return true end
    end
    return false
end

-- How many workers that are alive name each queue; and those that serve patterns: {words =, workers =} each.
local function servers()
    local counts, wide, known = {}, {}, {}
    for _, worker in ipairs(call('ZRANGEBYSCORE', P .. 'workers', us(now), '+inf')) do
        local words = registry.words(worker)
        local text = has_pattern(words) and concat(words, ',')
        if not text then
            for _, queue in ipairs(words) do counts[queue] = (counts[queue] or 0) + 1 end
        elseif known[text] then
            known[text].workers = known[text].workers + 1
        else
            known[text] = {words = words, workers = 1}
            wide[#wide + 1] = known[text]
        end
    end
    return counts, wide
end

local function queue_list()
    local queues, counts, wide = paused.queues(), servers()
    local rows = {}
    sort(queues)
    for i, queue in ipairs(queues) do
        local n = counts[queue] or 0
        for _, group in ipairs(wide) do n = n + (pattern.serves(group.words, queue) and group.workers or 0) end
        rows[i] = {name = queue, worker_count = n}
    end
    return answer{queues = rows}
end

return queue_list
