-- queue_list: the names of the queues, and who serves them, a page a call; changes nothing.
--
-- ARGV: now [, what is walked, cursor: the place where the last call ended]
-- role: viewer
-- reply: JSON: {"queues": {name: true, ...}, "workers": {worker that is alive: place in raw, ...},
--        "next": [what, cursor], the place to go on from; absent: that was all}; raw: the queues that they serve, a JSON array each. A member
--        may come twice
-- writes: nothing
-- uses: registry

local COUNTS = {workers = '100', halted = '200', queues = '500'} -- asked of a scan, which may find some more

local take, after = {}, {workers = 'halted', halted = 'queues'}

function take.workers(reply, found)
    for i = 1, #found, 2 do
        if tonumber(found[i + 1]) >= now then
            reply.raw[#reply.raw + 1] = registry.words_text(found[i]) or '[]'
            reply.workers[found[i]] = #reply.raw - 1
        end
    end
end

-- Takes queues that are paused, perhaps before their first job. A name that is not valid is no queue.
function take.halted(reply, found)
    for i = 1, #found, 2 do
        local queue = match(found[i], '^q/(.+)$')
        if is_name(queue) then reply.queues[queue] = true end
    end
end

function take.queues(reply, found)
    for _, queue in ipairs(found) do
        if is_name(queue) then reply.queues[queue] = true end
    end
end

local function scan(what, cursor)
    if what == 'workers' then return unpack(call('ZSCAN', P .. 'workers', cursor, 'COUNT', COUNTS.workers)) end
    if what == 'halted' then return unpack(call('HSCAN', P .. 'halted', cursor, 'MATCH', 'q/*', 'COUNT', COUNTS.halted)) end
    return unpack(call('SSCAN', P .. 'queues', cursor, 'COUNT', COUNTS.queues))
end

local function queue_list(ARGV)
    local what, cursor, found = ARGV[2] or 'workers', ARGV[3] or '0', nil
    if not take[what] or not find(cursor, '^%d+$') then return refuse('queue_list: wants now, perhaps what and cursor') end
    local reply = {queues = {}, workers = {}, raw = {}}
    cursor, found = scan(what, cursor)
    take[what](reply, found)
    if cursor == '0' then what = after[what] end
    local raw = reply.raw
    reply.raw, reply.next = nil, what and {what, cursor}
    return answer(reply, raw)
end

return queue_list
