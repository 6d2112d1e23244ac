-- queue_pause: pauses a queue: nothing of it starts, neither what waits nor what is parked; or ends that. With create, a queue may be paused before
-- its first job.
--
-- ARGV: now, queue, for_us ('': until it is resumed; 0: resume), reason, create (1: though there is no such queue yet), what, by (for the log; '': it is noted elsewhere)
-- role: operator
-- reply: JSON: {"before", "pause": as reasons.pause has them, of the pause before and of the one that is there now, "rest": as rate_wake has it}
--        {"missing": true}: no job or worker has that queue
-- uses: bell check paused rates reasons

local function describe(queue)
    local since = paused.since(queue)
    return since ~= '' and reasons.pause('queue', queue, nil, since) or nil
end

local function queue_pause(ARGV)
    local queue = ARGV[2]
    if #ARGV ~= 7 or not is_name(queue) or ARGV[5] ~= '0' and ARGV[5] ~= '1' then
        return refuse('queue_pause: wants now, queue, for_us, reason, create, what, by')
    end
    local wrong = check.wrong_kind('halted', 'hash') or check.wrong_kind('queues', 'set') or reasons.wrong() or rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local till, refusal = reasons.read(ARGV[3], ARGV[4])
    if refusal then return refusal end
    if ARGV[5] == '0' and not paused.is_known(queue) then return answer{missing = true} end

    local was = describe(queue)
    if till then
        call('HSETNX', P .. 'halted', 'q/' .. queue, us(now))
        rates.recall('0')
    elseif was then
        call('HDEL', P .. 'halted', 'q/' .. queue)
        bell.ring(queue)
    end
    if till or was then
        reasons.set('queue', queue, ARGV[4], till)
        if ARGV[6] ~= '' then rates.record(ARGV[6], ARGV[7]) end
    end
    return answer{before = was, pause = describe(queue), rest = till and rates.rest() or nil}
end

return queue_pause
