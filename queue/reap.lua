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
-- uses: core/base.lua core/now.lua core/bell.lua queue/check.lua queue/lease.lua queue/lane.lua

local WORKERS_MOST = 8 -- reaped in one call; the next ones at the next heartbeat

local worker, lease_us, interrupted_most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not worker or not is_whole(lease_us, 1) or not is_whole(interrupted_most, 1) then return refuse('reap: wrong arguments') end
if not call('ZSCORE', P .. 'workers', worker) then return refuse('unregistered: worker %s', worker) end

local function follow_clock(back_us)
    for _, id in ipairs(call('ZRANGE', P .. 'workers', 0, -1)) do call('ZINCRBY', P .. 'workers', us(-back_us), id) end
    for _, queue in ipairs(redis.pcall('SMEMBERS', P .. 'queues')) do
        for _, name in ipairs(redis.pcall('ZRANGE', P .. 'wake:' .. queue, 0, -1)) do
            call('ZADD', P .. 'wake:' .. queue, us(now), name)
        end
    end
    bell_ring()
end

local function amnesty_until()
    local last, till = (call('GET', P .. 'reap') or ''):match('^(%d+) (%d+)$')
    last, till = tonumber(last or 0), tonumber(till or 0)
    if now < last then follow_clock(last - now) end
    if now < last or now - last > lease_us / 2 then till = now + lease_us end
    return min(till, now + lease_us)
end

local taken = 0
local function bury_interrupted(id, lease, times)
    bury(id .. ':' .. lease.token:match('^[^/]+'), lease.lane, 'its worker died ' .. times .. ' times', lease.entry)
    count(lease.type, 'dead', 1)
end

-- Returns what is wrong with the keys that it needs; then nothing was changed.
local function reap(id)
    local wrong = wrong_kind('dead', 'zset') or wrong_kind('active:' .. id, 'hash')
    local leases, unread = leases_read(wrong and {} or call('HGETALL', P .. 'active:' .. id))
    for _, lease in ipairs(leases) do wrong = wrong or wrong_lane(lease.lane) end
    if wrong then return wrong end
    local back = {}
    for _, lease in ipairs(leases) do
        local attempts, interrupted, throttled, body = entry_read(lease.entry)
        lease.entry = entry_write(attempts, interrupted + 1, throttled, body)
        if interrupted + 1 >= interrupted_most then
            bury_interrupted(id, lease, interrupted + 1)
        else
            back[#back + 1] = lease
            count(lease.type, 'back', 1)
        end
    end
    bury_unread(id, unread)
    lanes_return(back)
    call('ZREM', P .. 'workers', id)
    call('DEL', P .. 'active:' .. id)
    taken = taken + #leases + #unread
end

local till = amnesty_until()
call('ZADD', P .. 'workers', us(now + lease_us), worker)
call('SET', P .. 'reap', us(now) .. ' ' .. us(till))
local reply, wrong = {us(now), 0}, nil
if now >= till then
    for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'workers', '-inf', us(now), 'LIMIT', 0, WORKERS_MOST)) do
        local wrong_here = reap(id)
        wrong = wrong or wrong_here
        if not wrong_here then reply[#reply + 1] = id end
    end
end
if wrong then return refuse_key(wrong) end
reply[2] = taken
return reply
