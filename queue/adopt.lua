-- adopt: a worker begins under a new id, after each connect, and takes over what it had under its old one: it keeps the jobs
-- that it still runs, the rest goes back to the head of its lanes. Without a new id it leaves: all goes back.
--
-- KEYS[1] prefix
-- ARGV: now, new id or '', old id or '', group, lease_us, info (JSON about the worker), n, queue * n, token * the rest:
--       what it still runs
-- reply: [ now, bell key, spare key, n queue keys, token that is no longer its own, ... ]
-- uses: core/base.lua core/now.lua core/bell.lua queue/check.lua queue/lease.lua queue/lane.lua

local new, old, group, lease_us, info = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local n = tonumber(ARGV[7])
if not (info and is_whole(n, 1)) or #ARGV < 7 + n or new == old or not is_whole(lease_us, new ~= '' and 1 or 0) then
    return refuse('adopt: wrong arguments')
end

local running, reply = {}, {us(now), P .. 'bell:' .. group, P .. 'spare:' .. group}
for i = 8 + n, #ARGV do running[ARGV[i]] = true end

local wrong = wrong_kind('active:' .. old, 'hash') or wrong_kind('active:' .. new, 'hash')
local leases, unread = leases_read(old ~= '' and not wrong and call('HGETALL', P .. 'active:' .. old) or {})
local kept, back = {}, {}

local function sort_leases()
    for _, lease in ipairs(leases) do
        if new ~= '' and running[lease.token] then
            kept[#kept + 1] = lease.token
            kept[#kept + 1] = lease.entry
            running[lease.token] = nil
        else
            back[#back + 1] = lease
        end
    end
end

local function wrong_keys()
    for _, lease in ipairs(back) do wrong = wrong or wrong_lane(lease.lane) end
    return wrong or wrong_kind('workers', 'zset') or wrong_kind('queues', 'set') or wrong_kind('dead', 'zset')
        or wrong_kind('duty', 'hash') or wrong_kind('spare:' .. group, 'list')
end

local function take_over()
    push('HSET', P .. 'active:' .. new, kept)
    bury_unread(old, unread)
    lanes_return(back)
    for _, lease in ipairs(back) do count(lease.type, 'back', 1) end
    call('ZREM', P .. 'workers', old)
    call('DEL', P .. 'active:' .. old)
end

local function pass_duty()
    if (call('HGET', P .. 'duty', group) or ''):match('^%S+') ~= old then return end
    call('HDEL', P .. 'duty', group)
    if call('EXISTS', reply[3]) == 1 then return end
    call('RPUSH', reply[3], 1)
    call('PEXPIRE', reply[3], 60000)
end

sort_leases()
wrong = wrong_keys()
if wrong then return refuse_key(wrong) end

if old ~= '' then
    take_over()
    pass_duty()
end
if new ~= '' then
    call('HSET', P .. 'active:' .. new, '@', info)
    call('ZADD', P .. 'workers', us(now + lease_us), new)
end
for i = 8, 7 + n do
    if new ~= '' then call('SADD', P .. 'queues', ARGV[i]) end
    reply[#reply + 1] = P .. 'queue:' .. ARGV[i]
end
for token in pairs(running) do -- a repeated adopt, whose first answer was lost, finds them moved already
    if new == '' or call('HEXISTS', P .. 'active:' .. new, token) == 0 then reply[#reply + 1] = token end
end
return reply
