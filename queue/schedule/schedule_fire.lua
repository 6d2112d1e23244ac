-- schedule_fire: the jobs of a schedule that is due, unless it is paused, and its next occurrence, once: whoever comes second finds that the
-- schedule waits for another occurrence.
--
-- ARGV: now, name,
--       definition, due   the schedule as promote named it
--       next              its next occurrence, us, later than due; '': it has none
--       then, unless no job is enqueued: queue, type, entry * n, each body with an id that begins with the name, behind a head that says when it is
--                         enqueued
-- role: worker
-- reply: 1, or 0 when it is no longer as promote named it, and nothing was changed
-- uses: arrival bell check ends fired large reasons stamp

local BODIES_MOST = 1000

local function wrong_arguments(ARGV, due, next_us)
    if #ARGV < 5 or #ARGV == 6 or #ARGV == 7 or #ARGV > 7 + BODIES_MOST then return 'wrong arguments' end
    if not is_name(ARGV[2]) then return 'its name is not a valid name' end
    if not is_whole(due, 1) then return 'due must be a time' end
    if ARGV[5] ~= '' and not (is_whole(next_us) and next_us > due) then return 'next must be later than due' end
    if ARGV[6] and not (is_name(ARGV[6]) and is_name(ARGV[7])) then return 'its queue or type is not a valid name' end
    local begins = '{"id":"' .. ARGV[2] .. '.'
    for i = 8, #ARGV do
        if find(ARGV[i], begins, 1, true) ~= stamp.BODY or not find(ARGV[i], stamp.ALONE) then return 'a body is another job\'s' end
    end
end

-- Says what keeps the jobs of a schedule from their queue.
local function wrong_keys(queue, name)
    return check.wrong_kind('queue:' .. queue, 'list') or arrival.wrong_registries() or arrival.wrong_counter(name, 'enqueued')
end

local function put(queue, name, bodies)
    local length = call('RPUSH', P .. 'queue:' .. queue, unpack(bodies))
    call('SADD', P .. 'queues', queue)
    for _, body in ipairs(bodies) do large.note(queue, body) end
    if length == #bodies then bell.arrived(queue) end
    arrival.count(name, 'enqueued', #bodies)
end

-- Buries the jobs. The schedule goes on, and who looks at the dead jobs sees why nothing came.
local function bury(schedule, queue, name, bodies, wrong)
    for i, body in ipairs(bodies) do
        ends.bury_new(format('schedule:%s:%s.%d', schedule, us(now), i), queue, name, 'schedule_fire: ' .. wrong, body)
    end
end

-- The runs that these jobs are, as fired.note has them; without any, one that was skipped.
local function runs_of(bodies, due)
    local runs = {}
    for i, body in ipairs(bodies) do
        local id, seconds = match(body, '^([%w_.-]*%.(%d+))"', stamp.BODY + #'{"id":"')
        runs[i] = {at = seconds and min(tonumber(seconds) * 1000000, WHOLE_MOST) or due, id = id}
    end
    return runs[1] and runs or {{at = due}}
end

local function schedule_fire(ARGV)
    local name, due, next_us = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
    local wrong = wrong_arguments(ARGV, due, next_us)
    if wrong then return refuse('schedule_fire: %s', wrong) end
    wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local record, bodies = 's ' .. name .. '\n', {unpack(ARGV, 8)}
    if call('HGET', P .. 'schedules', name) ~= ARGV[3] or tonumber(call('ZSCORE', P .. 'later', record) or nil) ~= due then
        return 0
    end
    if #bodies > 0 and not reasons.wrong() and reasons.noted('schedule', name) then bodies = {} end
    local unwanted = #bodies > 0 and wrong_keys(ARGV[6], ARGV[7])
    wrong = unwanted and check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local noted = not fired.wrong() -- asked before anything is changed: who lost the right to it would fire again and again

    if unwanted then
        bury(name, ARGV[6], ARGV[7], bodies, unwanted)
    elseif #bodies > 0 then
        put(ARGV[6], ARGV[7], bodies)
    end
    if noted then fired.note(name, bodies[1] and ARGV[6], bodies[1] and ARGV[7], runs_of(bodies, due)) end
    if next_us then
        call('ZADD', P .. 'later', us(next_us), record)
    else
        call('ZREM', P .. 'later', record)
    end
    return 1
end

return schedule_fire
