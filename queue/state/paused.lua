-- paused: since when a queue is paused: the field "q/<queue>" of the hash `halted`, which may be there before its first job.

local paused = {}

-- Returns since when a queue is paused, us, as text; '': it is not; '-1': it is, and what stands there is no time.
function paused.since(queue)
    local since = call('HGET', P .. 'halted', 'q/' .. queue)
    if not since then return '' end
    return find(since, '^%d+$') and is_whole(tonumber(since), 1) and since or '-1'
end

-- True when there is such a queue: it had a job or a worker, or is paused.
function paused.is_known(queue)
    return call('SISMEMBER', P .. 'queues', queue) == 1 or call('EXISTS', P .. 'queue:' .. queue) == 1
        or call('HEXISTS', P .. 'halted', 'q/' .. queue) == 1
end

local function add(names, known, name)
    if not is_name(name) or known[name] then return end
    names[#names + 1], known[name] = name, true
end

-- Lists the queues, with those that are paused before their first job. What is not a valid name is no queue, whoever wrote it there.
function paused.queues()
    local names, known = {}, {}
    for _, name in ipairs(call('SMEMBERS', P .. 'queues')) do add(names, known, name) end
    for _, field in ipairs(call('HKEYS', P .. 'halted')) do add(names, known, match(field, '^q/(.+)$')) end
    return names
end

return paused
