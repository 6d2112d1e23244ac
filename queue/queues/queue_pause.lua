-- queue_pause: pauses a queue: nothing of it starts, neither what waits nor what is parked; or ends that. A queue may be paused before
-- its first job.
--
-- KEYS[1] prefix
-- ARGV: now, queue, "pause" or "resume"
-- role: operator
-- reply: JSON: {"paused_since": when it was paused before this call, as paused.since tells it, "known": was there such a queue, "rest": as rate_wake has it}
--        {"missing": true} when there is none to resume
-- uses: bell check paused rates

local function queue_pause(ARGV)
    local queue, verb = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or not is_name(queue) or verb ~= 'pause' and verb ~= 'resume' then
        return refuse('queue_pause: wants now, queue, pause or resume')
    end
    local wrong = check.wrong_kind('halted', 'hash') or check.wrong_kind('queues', 'set')
    if wrong then return check.refuse_key(wrong) end
    local since, known = paused.since(queue), paused.is_known(queue)
    if not known and verb == 'resume' then return answer{missing = true} end
    if verb == 'pause' then
        call('HSETNX', P .. 'halted', 'q/' .. queue, us(now))
        rates.recall('0')
    elseif since ~= '' then
        call('HDEL', P .. 'halted', 'q/' .. queue)
        bell.ring(queue)
    end
    return answer{paused_since = since, known = known, rest = verb == 'pause' and rates.rest() or nil}
end

return queue_pause
