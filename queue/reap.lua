-- reap: the heartbeat of a worker, and what every heartbeat does for all: the leases of workers past their deadline go back
-- to the head of their lanes, each counted as interrupted; a job that was interrupted too often is dead.
--
-- `reap` keeps when this was done last and until when nobody is reaped. If the last time is more than half a lease ago, or
-- in the future, there was an outage or the clock was set: every deadline is then late through no fault of its worker,
-- so for one lease nobody is reaped.
--
-- KEYS[1] prefix
-- ARGV: now, worker, lease_us, interrupted_most
-- reply: [ now, number of leases taken back, worker that was reaped, ... ]
-- uses: core/base.lua core/bell.lua queue/lease.lua queue/lane.lua

local WORKERS_MOST = 8 -- reaped in one call; the next ones at the next heartbeat

local worker, lease_us, interrupted_most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not (worker and lease_us and interrupted_most) or lease_us < 1 then return refuse('reap: wrong arguments') end
if not call('ZSCORE', P .. 'workers', worker) then return refuse('unregistered: worker %s', worker) end

local function amnesty_until()
    local last, till = (call('GET', P .. 'reap') or ''):match('^(%d+) (%d+)$')
    last, till = tonumber(last or 0), tonumber(till or 0)
    if now < last or now - last > lease_us / 2 then till = now + lease_us end
    return min(till, now + lease_us)
end

local taken = 0
local function reap(id)
    local fields = call('HGETALL', P .. 'active:' .. id)
    local back = {}
    for i = 1, #fields, 2 do
        local token, entry = fields[i], fields[i + 1]
        local lane = lane_of(token)
        if lane then
            local _, name = lane_parts(lane)
            local attempts, interrupted, throttled, body = entry_read(entry)
            entry = entry_write(attempts, interrupted + 1, throttled, body)
            taken = taken + 1
            if interrupted + 1 >= interrupted_most then
                bury(id .. ':' .. token:match('^[^/]+'), lane, 'its worker died ' .. interrupted + 1 .. ' times', entry)
                count(name, 'dead', 1)
            else
                back[#back + 1] = {token, entry}
                count(name, 'back', 1)
            end
        end
    end
    lanes_return(back)
    call('ZREM', P .. 'workers', id)
    call('DEL', P .. 'active:' .. id)
end

local till = amnesty_until()
call('ZADD', P .. 'workers', us(now + lease_us), worker)
call('SET', P .. 'reap', us(now) .. ' ' .. us(till))
local reply = {us(now), 0}
if now >= till then
    for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'workers', '-inf', us(now), 'LIMIT', 0, WORKERS_MOST)) do
        reap(id)
        reply[#reply + 1] = id
    end
end
reply[2] = taken
return reply
