-- enqueue: one job, once: while its id is remembered, another call with that id changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, queue, type, id,
--       keep_ms    how long the id is remembered
--       tag        random, of this one call: when it is sent twice because its answer was lost, both answers are the same
--       delay_us   run at the earliest that long from now, or ''
--       at_us      run at the earliest at that time, or ''
--       body       in the order of queue/job.h: {"id":"<id>","type":"<type>" first
-- reply: [ 1 when the job is new, else 0; id ]
-- full: refused
-- uses: core/base.lua core/now.lua core/bell.lua queue/check.lua queue/arrival.lua

local queue, type, id, keep_ms, tag = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local delay_us, at_us, body = ARGV[7], ARGV[8], ARGV[9]
local TIME_MOST = 4102444800000000 -- the year 2100: farther away it is a mistake

local function wrong_arguments()
    if #ARGV ~= 9 then return 'wants 9 arguments' end
    if not is_name(queue) then return 'its queue is no name' end
    if not is_name(type) then return 'its type is no name' end
    if not is_name(id) then return 'its id is no name' end
    if not is_name(tag) then return 'its tag is no name' end
    if not keep_ms or keep_ms < 1 or keep_ms > 1e12 or keep_ms % 1 ~= 0 then return 'keep_ms must be a whole number' end
    if delay_us ~= '' and at_us ~= '' then return 'either a delay or a time' end
    if body:find('{"id":"' .. id .. '","type":"' .. type .. '"', 1, true) ~= 1 then return 'its body is another job\'s' end
end

-- When it is due: 0 is at once.
local function due_time()
    if delay_us == '' and at_us == '' then return 0 end
    local due = delay_us ~= '' and now + (tonumber(delay_us) or 0 / 0) or tonumber(at_us)
    if not due or not (due >= 0 and due <= TIME_MOST) then return nil, 'its time must lie before the year 2100' end
    return due > now and due or 0
end

local function wrong_keys(due)
    return wrong_kind('id:' .. id, 'string') or wrong_kind('queue:' .. queue, 'list') or wrong_kind('later', 'zset')
        or wrong_registries() or wrong_counter(type, due == 0 and 'enqueued' or 'scheduled')
end

local wrong, due = wrong_arguments()
if not wrong then due, wrong = due_time() end
if wrong then return refuse('enqueue: %s', wrong) end
wrong = wrong_keys(due)
if wrong then return refuse_key(wrong) end

local known = call('GET', P .. 'id:' .. id)
if known then return {known == tag and 1 or 0, id} end

if due == 0 then
    call('RPUSH', P .. 'queue:' .. queue, body)
    count_arrivals(type, 'enqueued', 1)
else
    local record = string.format('q %s.%s %s %s\n', id, tag, queue, type) .. body
    call('ZADD', P .. 'later', us(due), record)
    count_arrivals(type, 'scheduled', 1)
    if call('ZRANGE', P .. 'later', 0, 0)[1] == record then bell_ring(queue) end
end
call('SADD', P .. 'queues', queue)
if VIRTUAL then
    call('SET', P .. 'id:' .. id, tag)
else
    call('SET', P .. 'id:' .. id, tag, 'PX', keep_ms)
end
return {1, id}
