-- claim_duty: when the next look is, and whose: the pacing duty.
--
-- uses: bell claim_call claim_wait gate later_records
local claim_duty = {}

local claim, wait = claim_call, claim_wait

local DUTY_US = 2000000 -- the pacing duty passes to another when its holder is silent for that long

-- When to look at what waits, when the first job of `later` is due, whether something is due already, and whether what this claim
-- parked opens before all that the worker on duty knows of.
function claim_duty.next_times()
    local at, look, due = huge, huge, false
    for _, queue in ipairs(claim.queues) do
        for name, opens in pairs(claim.wakes[queue]) do
            at = min(at, opens)
            look = min(look, gate.look_time(name, opens))
            due = due or opens <= now + claim.ahead_of(name)
        end
    end
    local later = max(later_records.first() or huge, 1) -- a negative number says never
    return look, later, due, claim.soonest <= min(at, later) and claim.soonest < huge
end

-- Who holds the pacing duty of this group; nil: nobody. By now the leases are written: a duty that holds something else is
-- nobody's.
local function duty_holder()
    local held = call_safe('HGET', P .. 'duty', claim.group)
    local holder, till = (type(held) == 'string' and held or ''):match('^(%S+) (%d+)')
    till = tonumber(till)
    return holder and till > now and till <= now + DUTY_US and holder or nil
end

local function pass_on(mine_still, more)
    if mine_still then call_safe('HDEL', P .. 'duty', claim.group) end
    if more or mine_still or not duty_holder() then bell.ring_spare(claim.group) end
    claim.duty_until = 0
end

-- By now the leases are written: what holds something else is passed over.
local function take_back_all(queue)
    local ok, found = pcall(wait.take_back_all, queue)
    return ok and found
end

-- Returns whether a type was taken back: while this worker had no duty, nobody rang for it when one was set aside.
local function take_if_free(mine_still)
    local holder, found = duty_holder(), false
    if holder and holder ~= claim.worker then
        claim.duty_until = 0
        return false
    end
    for _, queue in ipairs(mine_still and {} or claim.queues) do found = take_back_all(queue) or found end
    claim.duty_until = now + DUTY_US
    call_safe('HSET', P .. 'duty', claim.group, claim.worker .. ' ' .. us(claim.duty_until) .. ' ' .. concat(claim.all_queues, ','))
    return found
end

-- The pacing duty: one worker of the group with a free executor keeps the timer and watches the queues. Who has none left
-- passes it on, and calls another as long as nobody has it; who has some takes it then. A worker that is far away calls another
-- when no more of its executors may wait long for a slot. Returns whether there is more to look at.
function claim_duty.decide(more, news)
    local mine_still = claim.duty_until > now and claim.duty_until <= now + DUTY_US
    if claim.free < 1 then
        pass_on(mine_still, more)
    elseif not mine_still or claim.duty_until - now < DUTY_US / 2 then
        more = take_if_free(mine_still) or more
    end
    if claim.free > 0 and claim.lacks_far() then bell.ring_spare(claim.group) end
    for _, queue in ipairs(news and claim.queues or {}) do
        bell.ring(queue, claim.duty_until > 0 and claim.group or nil) -- the own duty has just looked
    end
    return more
end

return claim_duty
