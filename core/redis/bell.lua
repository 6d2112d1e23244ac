-- bell: wakes the worker that holds the pacing duty of its group, which sleeps in BLPOP bell:<group>, or another of the group,
-- which sleeps in BLPOP spare:<group>.
--
-- duty: hash group -> "<worker> <until_us> <queue>,<queue>"; <group>/second -> "<worker> <until_us>", who looks after the one on
-- duty. One token in a bell is enough; it expires by itself where nobody comes for it. A wake-up is a hint: nothing here may fail the script that rings, so a
-- duty of the wrong kind is passed over.

local bell = {}

local DAY_US = 86400 * 1000000 -- a group whose last holder was not heard of for a day has no workers

local function put_token(key)
    if call('EXISTS', key) == 1 then return end
    call('RPUSH', key, 1)
    call('PEXPIRE', key, 60000)
end

local function serves(queues, wanted)
    for queue in queues:gmatch('[^,]+') do
        if wanted[queue] or wanted[queue .. '!'] then return true end
    end
end

-- Rings for the groups that serve one of the queues, a set, "<queue>!" among them; nil: for all. but: not for this one.
function bell.ring_all(wanted, but)
    local duty = call_safe('HGETALL', P .. 'duty')
    for i = 1, #duty, 2 do
        local until_us, queues = duty[i + 1]:match('^%S+ (%d+) ?(%S*)$')
        if not until_us or tonumber(until_us) < now - DAY_US then
            call('HDEL', P .. 'duty', duty[i])
        elseif queues ~= '' and duty[i] ~= but and (not wanted or serves(queues, wanted)) then
            put_token(P .. 'bell:' .. duty[i])
        end
    end
end

function bell.ring(queue, but) bell.ring_all(queue and {[queue] = true}, but) end

function bell.ring_spare(group) put_token(P .. 'spare:' .. group) end

return bell
