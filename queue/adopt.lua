-- adopt: a worker begins under a new id, after each connect, and takes over what it had under its old one: it keeps the jobs
-- that it still runs, the rest goes back to the head of its lanes. Without a new id it leaves: all goes back.
--
-- KEYS[1] prefix
-- ARGV: now, new id or '', old id or '', group, lease_us, info (JSON about the worker), n, queue * n, token * the rest:
--       what it still runs
-- reply: [ now, bell key, spare key, n queue keys, token that is no longer its own, ... ]
-- uses: core/base.lua core/bell.lua queue/lease.lua queue/lane.lua

local new, old, group, lease_us, info = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local n = tonumber(ARGV[7])
if not (new and old and group and lease_us and info and n) or n < 1 or #ARGV < 7 + n or new == old then
    return refuse('adopt: wrong arguments')
end

local running, reply = {}, {us(now), P .. 'bell:' .. group, P .. 'spare:' .. group}
for i = 8 + n, #ARGV do running[ARGV[i]] = true end

local function take_over()
    local fields = call('HGETALL', P .. 'active:' .. old)
    local kept, back = {}, {}
    for i = 1, #fields, 2 do
        local token, entry = fields[i], fields[i + 1]
        if new ~= '' and running[token] then
            kept[#kept + 1] = token
            kept[#kept + 1] = entry
            running[token] = nil
        elseif lane_of(token) then
            local _, name = lane_parts(lane_of(token))
            back[#back + 1] = {token, entry}
            count(name, 'back', 1)
        end
    end
    push('HSET', P .. 'active:' .. new, kept)
    lanes_return(back)
    call('ZREM', P .. 'workers', old)
    call('DEL', P .. 'active:' .. old)
end

local function pass_duty()
    if (call('HGET', P .. 'duty', group) or ''):match('^%S+') ~= old then return end
    call('HDEL', P .. 'duty', group)
    call('RPUSH', reply[3], 1)
    call('PEXPIRE', reply[3], 60000)
end

call('ZCARD', P .. 'workers') -- raises before anything is written when the key holds something else
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
