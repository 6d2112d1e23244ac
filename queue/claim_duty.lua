-- claim_duty: when the next look is, and whose: the pacing duty.

local DUTY_US = 2000000        -- the pacing duty passes to another when its holder is silent for that long

-- When the next gate opens, when the first job of `later` is due, and whether this claim parked a type that opens before all
-- that the worker on duty knows of.
local function next_times(after)
    local known, news = math.huge, math.huge
    for _, at in pairs(after) do known = min(known, at) end
    for _, s in ipairs(order) do
        if s.wakes and s.woken then known = min(known, s.wakes) end
        if s.wakes and not s.woken then news = min(news, s.wakes) end
        if s.wakes and s.wakes <= now + AHEAD then more = 1 end
    end
    local later = tonumber(redis.pcall('ZRANGE', P .. 'later', 0, 0, 'WITHSCORES')[2]) or math.huge
    return min(known, news), later, news < min(known, later)
end

local function ring_spare()
    if call('EXISTS', P .. 'spare:' .. group) == 0 then
        call('RPUSH', P .. 'spare:' .. group, 1)
        call('PEXPIRE', P .. 'spare:' .. group, 60000)
    end
end

-- Who holds the pacing duty of this group; nil: nobody. By now the leases are written: a duty that holds something else is
-- nobody's.
local function duty_holder()
    local held = redis.pcall('HGET', P .. 'duty', group)
    local holder, till = (type(held) == 'string' and held or ''):match('^(%S+) (%d+)')
    till = tonumber(till)
    return holder and till > now and till <= now + DUTY_US and holder or nil
end

-- The pacing duty: one worker of the group with a free executor keeps the timer and watches the queues. Who has none left
-- passes it on, and calls another as long as nobody has it; who has some takes it then.
local function duty(news)
    local mine_still = duty_until > now and duty_until <= now + DUTY_US
    if free < 1 then
        if mine_still then redis.pcall('HDEL', P .. 'duty', group) end
        if more == 1 or mine_still or not duty_holder() then ring_spare() end
        duty_until = 0
    elseif not mine_still or duty_until - now < DUTY_US / 2 then
        local holder = duty_holder()
        if not holder or holder == worker then
            duty_until = now + DUTY_US
            redis.pcall('HSET', P .. 'duty', group, worker .. ' ' .. us(duty_until) .. ' ' .. table.concat(queues, ','))
        else
            duty_until = 0
        end
    end
    if news and duty_until == 0 then
        for _, queue in ipairs(queues) do bell_ring(queue) end
    end
end
