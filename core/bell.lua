-- bell: wakes the worker that holds the pacing duty of its group, which sleeps in BLPOP bell:<group>.
--
-- duty: hash group -> "<worker> <until_us> <queue>,<queue>". One token in a bell is enough; it expires by
-- itself where nobody comes for it. A wake-up is a hint: nothing here may fail the script that rings, so a
-- duty of the wrong kind is passed over.

-- Rings for the groups that serve queue; nil: for all.
local function bell_ring(queue)
    local DAY_US = 86400 * 1000000 -- a group whose last holder was not heard of for a day has no workers
    local duty = redis.pcall('HGETALL', P .. 'duty')
    for i = 1, #duty, 2 do
        local until_us, queues = duty[i + 1]:match('^%S+ (%d+) (%S+)$')
        if not until_us or tonumber(until_us) < now - DAY_US then
            call('HDEL', P .. 'duty', duty[i])
        elseif not queue or (',' .. queues .. ','):find(',' .. queue .. ',', 1, true) then
            local bell = P .. 'bell:' .. duty[i]
            if call('EXISTS', bell) == 0 then
                call('RPUSH', bell, 1)
                call('PEXPIRE', bell, 60000)
            end
        end
    end
end
