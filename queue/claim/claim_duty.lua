-- claim_duty: when the next claim is due, and which worker makes it: the one with the pacing duty, or the second, when the duty ends. So a worker
-- that hangs is missed within a second, and the others need not claim often.
--
-- uses: bell claim_alone claim_call claim_held data_loss duty gate later_records leases registry
local claim_duty = {}

local claim, held = claim_call, claim_held

local LATE_US = 10000 -- how long after the end of the duty the second claims

local opens_at -- when the first gate opens at which something waits; set by next_times()

-- True when a worker has the duty that was given to it until then.
function claim_duty.is_held(until_us) return until_us > now and until_us <= now + duty.US end

-- True while a worker has the duty and more than half of its time is left.
function claim_duty.stays(until_us) return until_us - now >= duty.US / 2 and claim_duty.is_held(until_us) end

local function follow_clock()
    local ok, is_back = pcall(leases.claimed, claim.worker)
    return ok and is_back
end

-- Reads who has the duty. A duty that ends later than any that is taken now was taken before the clock was set back. Nothing here may make a claim
-- fail.
function claim_duty.begin()
    if claim.duty_until > now + duty.US then follow_clock() end
end

-- Says what follows this claim: {at =, later =, is_due =, is_news =}. at: when the next claim is due for what is parked; later: when the first job
-- of `later` is due; is_due: something is due already; is_news: what this claim parked opens before anything that the worker on duty knows of, or
-- that one chooses the queues that it serves by what it knows of each.
function claim_duty.next_times()
    local first, at, is_due = huge, huge, false
    for _, queue in ipairs(claim.queues) do
        for name, opens in pairs(claim.wakes[queue]) do
            first = min(first, opens)
            at = min(at, gate.check_time(name, opens))
            is_due = is_due or opens <= now + claim.ahead_of(name)
        end
    end
    opens_at = first
    at = max(claim.alone and claim_alone.next_time() or min(at, claim_alone.next_time()), 1)
    local later = max(later_records.first() or huge, 1) -- a negative number says never, here too
    local is_news = claim.soonest <= min(first, later) or claim.duty_until == 0 and claim.has_option('t')
    return {at = at, later = later, is_due = is_due, is_news = is_news and claim.soonest < huge}
end

local function duty_holder() return duty.holder(claim.group, duty.US) end

local function pass_on(mine_still, more)
    if mine_still then call_safe('HDEL', P .. 'duty', claim.group) end
    if more or mine_still or not duty_holder() then bell.ring_spare(claim.group) end
    claim.duty_until = 0
end

-- Takes held types back. The leases are written by now, so keys of a wrong kind are passed over.
local function take_back_held(queue)
    local ok, found = pcall(held.take_back_all, queue)
    return ok and found
end

-- Makes this worker the second, unless there is one, as another worker has the duty until then.
local function stand_by(duty_till)
    local second = duty.second(claim.group)
    local who, till = duty.holder(second, duty.SECOND_US)
    if who and who ~= claim.worker then return end
    if not who or till - now < duty.SECOND_US / 2 then
        call_safe('HSET', P .. 'duty', second, claim.worker .. ' ' .. us(now + duty.SECOND_US))
    end
    claim.second_at = duty_till + LATE_US
end

local function leave_second()
    local second = duty.second(claim.group)
    if duty.holder(second, duty.SECOND_US) == claim.worker then call_safe('HDEL', P .. 'duty', second) end
end

-- Returns the names and patterns that a worker serves, where this claim names only some.
local function words()
    local text = call_safe('HGET', P .. 'duty', claim.group)
    local holder, written = match(type(text) == 'string' and text or '', '^(%S+) %d+ ,(%S+)$')
    return holder == claim.worker and written or concat(registry.words(claim.worker), ',')
end

-- Takes the duty if it is free. Returns whether there is more to do: the clock was set back, or a held type was taken back, for which nobody rang.
local function take_if_free(mine_still)
    local holder, till = duty_holder()
    if holder and holder ~= claim.worker then
        claim.duty_until = 0
        stand_by(till)
        return false
    end
    local found = follow_clock()
    if not mine_still then leave_second() end
    for _, queue in ipairs(mine_still and {} or claim.queues) do found = take_back_held(queue) or found end
    data_loss.mark(true)
    claim.duty_until = now + duty.US
    local wide = claim.has_option('w')
    bell.write_duty(claim.group, claim.worker, claim.duty_until, wide and words() or concat(claim.all_queues, ','), wide)
    return found
end

-- Tells other groups what waits now in queues that this claim has served, and forgets what others have told its own.
local function tell_others(news)
    local but = claim.duty_until > 0 and claim.group or nil -- its own group knows: this claim has just served them
    for _, queue in ipairs(claim.queues) do
        if news or claim.new_gates[queue] then bell.tell(queue, but, news, claim.new_gates[queue]) end
    end
    for _, queue in ipairs(claim.news) do
        if claim.wakes[queue] and not claim.missed[queue] then call_safe('SREM', P .. 'news:' .. claim.group, queue) end
    end
end

-- Decides about the pacing duty: one worker of the group that has a free executor keeps the timer and watches the queues. A worker without a free
-- executor passes the duty on, and calls another one as long as nobody has it. A worker that is far away calls another one when no more of its
-- executors may wait long for a slot; off duty only if it has got a job or a gate opens soon, else workers of which none may wait long would call
-- each other in a circle. Returns whether there is more to do.
function claim_duty.decide(more, news)
    if claim.free < 1 then
        pass_on(claim_duty.is_held(claim.duty_until), more)
    elseif not claim_duty.stays(claim.duty_until) then
        more = take_if_free(claim_duty.is_held(claim.duty_until)) or more
    end
    if claim.free > 0 and claim.lacks_far() and (claim.duty_until > 0 or #claim.leases > 0 or opens_at <= now + claim.ahead_asked) then
        bell.ring_spare(claim.group)
    end
    tell_others(news)
    return more
end

return claim_duty
