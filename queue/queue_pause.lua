-- queue_pause: pauses a queue: nothing of it starts, neither what waits nor what is parked; or ends that.
--
-- KEYS[1] prefix
-- ARGV: now, queue, "pause" or "resume"
-- reply: [ since when it was paused before this call, as paused.since tells it ]
--        [ "missing" ] when there is no such queue
-- uses: bell check paused

local function is_known(queue)
    return call('SISMEMBER', P .. 'queues', queue) == 1 or call('EXISTS', P .. 'queue:' .. queue) == 1
end

local function queue_pause(ARGV)
    local queue, verb = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or not is_name(queue) or verb ~= 'pause' and verb ~= 'resume' then
        return refuse('queue_pause: wants now, queue, pause or resume')
    end
    local wrong = check.wrong_kind('halted', 'hash') or check.wrong_kind('queues', 'set')
    if wrong then return check.refuse_key(wrong) end
    local since = paused.since(queue)
    if since == '' and not is_known(queue) then return {'missing'} end
    if verb == 'pause' then
        call('HSETNX', P .. 'halted', 'q/' .. queue, us(now))
    elseif since ~= '' then
        call('HDEL', P .. 'halted', 'q/' .. queue)
        bell.ring(queue)
    end
    return {since}
end

return queue_pause
