-- reap: the heartbeat of a worker, and what every heartbeat does for all: the leases of workers past their deadline go back
-- to the head of their lanes, each counted as interrupted; a job that was interrupted too often is dead.
--
-- `reap` keeps when this was done last and until when nobody is reaped. If the last time is more than half a lease ago, or
-- in the future, there was an outage or the clock was set: every deadline is then late through no fault of its worker,
-- so for one lease nobody is reaped. With a clock that was set back deadlines move back, and all that waits is looked at: gates
-- move with the clock when they are loaded, what was written down of them in wake does not.
--
-- KEYS[1] prefix
-- ARGV: now, worker, lease_us, interrupted_most
-- reply: [ now, number of leases taken back, worker that was reaped, ... ]
--        or, when a key holds something else, its name: what needs it stays where it is, all else is done
-- uses: bell check ends gate lane lease

local WORKERS_MOST = 8 -- reaped in one call; the next ones at the next heartbeat

-- Pauses of limits that were set at a time which has not come yet.
local function pauses_back(back_us)
    local limits = call_safe('HGETALL', P .. 'limits')
    for i = 1, #limits, 2 do
        local head, till, set_at, tail = limits[i + 1]:match('^(.* pause:)(%d+)/(%d+)(.*)$')
        if head and tonumber(set_at) > now then
            till, set_at = max(0, tonumber(till) - back_us), max(0, tonumber(set_at) - back_us)
            call('HSET', P .. 'limits', limits[i], head .. us(till) .. '/' .. us(set_at) .. tail)
        end
    end
end

local function follow_clock(back_us)
    pauses_back(back_us)
    for _, id in ipairs(call('ZRANGE', P .. 'workers', 0, -1)) do call('ZINCRBY', P .. 'workers', us(-back_us), id) end
    for _, queue in ipairs(call_safe('SMEMBERS', P .. 'queues')) do
        for _, name in ipairs(call_safe('ZRANGE', P .. 'wake:' .. queue, 0, -1)) do
            call('ZADD', P .. 'wake:' .. queue, us(now), name)
        end
        -- Keys may be many: their times move back as a whole, all by the same factor, which is right to microseconds a second.
        local sleep = P .. 'sleep:' .. queue
        call_safe('ZUNIONSTORE', sleep, 1, sleep, 'WEIGHTS', format('%.17g', now / (now + back_us)))
    end
    bell.ring()
end

local function amnesty_until(lease_us)
    local last, till = (call('GET', P .. 'reap') or ''):match('^(%d+) (%d+)$')
    last, till = tonumber(last or 0), tonumber(till or 0)
    if now < last then follow_clock(last - now) end
    if now < last or now - last > lease_us / 2 then till = now + lease_us end
    return min(till, now + lease_us)
end

local function wrong_keys(jobs)
    local wrong = check.wrong_kind('dead', 'zset')
    for _, job in ipairs(jobs) do wrong = wrong or lane.wrong(job.lane) end
    return wrong
end

-- Counts the interruption; false: it was one too many, and the job is dead.
local function survives(id, job, interrupted_most)
    local attempts, interrupted, throttled, body, attrs = lease.entry_read(job.entry)
    interrupted = interrupted + 1
    job.entry = lease.entry_write(attempts, interrupted, throttled, body, attrs)
    if interrupted < interrupted_most then return true end
    ends.bury(id .. ':' .. lease.token_head(job.token), job.lane, 'its worker died ' .. interrupted .. ' times', job.entry)
    return false
end

-- Returns how many leases a worker had, or nil and what is wrong with the keys that this needs; then nothing was changed.
local function reap_one(id, interrupted_most)
    local active = P .. 'active:' .. id
    local wrong = check.wrong_kind('active:' .. id, 'hash')
    local jobs, unread = lease.list(wrong and {} or call('HGETALL', active))
    wrong = wrong or wrong_keys(jobs)
    if wrong then return nil, wrong end
    local back = {}
    for _, job in ipairs(jobs) do
        local lives = survives(id, job, interrupted_most)
        if lives then back[#back + 1] = job end
        lease.count(job.type, lives and 'back' or 'dead', 1)
    end
    for _, job in ipairs(jobs) do lane.release(job.token) end
    ends.bury_unread(id, unread)
    lane.give_all_back(back)
    call('ZREM', P .. 'workers', id)
    call('DEL', active)
    return #jobs + #unread
end

local function reap(ARGV)
    local worker, lease_us, interrupted_most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
    if not worker or not is_whole(lease_us, 1) or not is_whole(interrupted_most, 1) then return refuse('reap: wrong arguments') end
    if not call('ZSCORE', P .. 'workers', worker) then return refuse('unregistered: worker %s', worker) end

    local till = amnesty_until(lease_us)
    call('ZADD', P .. 'workers', us(now + lease_us), worker)
    call('SET', P .. 'reap', us(now) .. ' ' .. us(till))
    local reply, first_wrong = {us(now), 0}, nil
    local late = now >= till and call('ZRANGEBYSCORE', P .. 'workers', '-inf', us(now), 'LIMIT', 0, WORKERS_MOST) or {}
    for _, id in ipairs(late) do
        local taken, wrong = reap_one(id, interrupted_most)
        first_wrong = first_wrong or wrong
        if taken then
            reply[2] = reply[2] + taken
            reply[#reply + 1] = id
        end
    end
    gate.save()
    return first_wrong and check.refuse_key(first_wrong) or reply
end

return reap
