-- queue_rows: jobs of several queues, in numbers; changes nothing.
--
-- ARGV: now, queue, ... (1 to 100)
-- role: viewer
-- reply: JSON: {"rows": [{"waiting", "paused": as reasons.pause has it; since -1: unknown, "parked"}, ...]} of the first queues, as many as one call
--        may count, at least one. No "parked": the queue has more lanes than that; queue_purge counts them by pages
-- writes: nothing
-- uses: paused reasons

local MOST_QUEUES = 100
local MOST_READ = 2000 -- lanes, gates and types that one call reads, about 1 us each

local left -- of one call; below 0: too many

local function read(count) left = left - count end

local function names(key)
    if left < 0 then return {} end
    local list = call('ZRANGE', key, '0', us(left))
    read(#list + 1)
    return list
end

local function count_lanes(path, lanes)
    local jobs = 0
    read(#lanes)
    if left < 0 then return 0 end
    for i = 1, #lanes do jobs = jobs + call('LLEN', path .. lanes[i]) end
    return jobs
end

-- Counts the lanes in the rings of types.
local function in_rings(queue, kinds)
    local jobs = 0
    for _, kind in ipairs(kinds) do
        local path = queue .. '/' .. kind
        jobs = jobs + count_lanes(P .. 'lane:' .. path .. '/', names(P .. 'ring:' .. path))
    end
    return jobs
end

-- A type whose ring is not empty waits at one gate, or is held; other lanes sleep.
local function parked(queue)
    local jobs = in_rings(queue, names(P .. 'held:' .. queue))
    for _, gate_name in ipairs(names(P .. 'wake:' .. queue)) do
        if gate_name ~= '*' then jobs = jobs + in_rings(queue, names(P .. 'wait:' .. queue .. '/' .. gate_name)) end
    end
    for _, gate_name in ipairs(names(P .. 'sleep:' .. queue)) do
        jobs = jobs + count_lanes(P .. 'lane:' .. queue .. '/', names(P .. 'wait:' .. queue .. '/' .. gate_name))
    end
    return jobs
end

local function row(queue)
    local jobs = parked(queue) + parked(queue .. '!')
    local since = paused.since(queue)
    local pause = since ~= '' and reasons.pause('queue', queue, nil, since) or nil
    return {waiting = call('LLEN', P .. 'queue:' .. queue), paused = pause, parked = left >= 0 and jobs or nil}
end

local function queue_rows(ARGV)
    if #ARGV < 2 or #ARGV > 1 + MOST_QUEUES then return refuse('queue_rows: wants now, 1 to %d queues', MOST_QUEUES) end
    for i = 2, #ARGV do
        if not is_name(ARGV[i]) then return refuse('queue_rows: wrong name of a queue') end
    end
    left = MOST_READ
    local rows = {row(ARGV[2])}
    for i = 3, #ARGV do
        local next_row = row(ARGV[i])
        if left < 0 then break end
        rows[i - 1] = next_row
    end
    return answer{rows = rows}
end

return queue_rows
