-- claim_commit: writing what was decided. Every key was read or checked before; what only counts may not fail.

local MARK_US = 1000000        -- rates are measured over about a second

-- Takes types that were set aside back to wake, now that this worker can run them.
local function take_back(queue)
    local held = call('ZRANGE', P .. 'held:' .. queue, 0, -1)
    for _, name in ipairs(held) do
        if mine[name] then
            call('ZADD', P .. 'wake:' .. queue, us(now), name)
            call('ZREM', P .. 'held:' .. queue, name)
        end
    end
end

local function waits(s) return s.left or #s.parked > 0 end

-- What is wrong with the keys that commit writes and nothing has read so far; nil: nothing.
local function wrong_keys()
    local wrong = #dead > 0 and wrong_kind('dead', 'zset') or nil
    for _, s in ipairs(order) do
        if waits(s) and not (s.woken and mine[s.name]) then wrong = wrong or wrong_lane(s.lane) end
    end
    return wrong
end

-- A type that this worker cannot run waits in held, unless it stands in wake until its gate opens.
local function set_aside(s)
    if not s.woken and call('ZSCORE', P .. 'wake:' .. s.queue, s.name) then return end
    aside[#aside + 1] = s.name
    if call('ZADD', P .. 'held:' .. s.queue, us(now), s.name) == 1 then bell_ring(s.queue) end
end

local function commit_lane(s, wake, unwake)
    if #s.parked > 0 then push('RPUSH', P .. 'lane:' .. s.lane, s.parked) end
    if s.taken > 0 then call('LTRIM', P .. 'lane:' .. s.lane, s.taken, -1) end
    if waits(s) and mine[s.name] then
        if not s.woken then call('ZREM', P .. 'held:' .. s.queue, s.name) end
        s.wakes = opening(s)
        if s.wakes ~= s.woken then
            wake[#wake + 1] = s.wakes == math.huge and '+inf' or us(s.wakes)
            wake[#wake + 1] = s.name
        end
    elseif s.woken then
        unwake[#unwake + 1] = s.name
    end
    if waits(s) and not mine[s.name] then set_aside(s) end
end

local function mark_rate(name)
    local stats = P .. 'stats:' .. name
    local m = redis.pcall('HMGET', stats, 'mark_us', 'mark', 'pulled', 'served')
    local at, started = tonumber(m[1] or 0) or 0, (tonumber(m[3] or 0) or 0) + (tonumber(m[4] or 0) or 0)
    if now - at >= MARK_US or now < at then
        redis.pcall('HSET', stats, 'last_us', us(at), 'last', m[2] or 0, 'mark_us', us(now), 'mark', started)
    end
end

local function commit_counters(s)
    local pulled = s.pulled > 0 and count(s.name, 'pulled', s.pulled)
    local parked = #s.parked > 0 and count(s.name, 'parked', #s.parked)
    if s.taken > 0 then count(s.name, 'served', s.taken) end
    if pulled == s.pulled or parked == #s.parked then redis.pcall('HSETNX', P .. 'types', s.name, '') end -- a new type
    if s.pulled + s.taken == 0 then return end
    if options:find('m', 1, true) then mark_rate(s.name) end
    if s.gate then
        rules[#rules + 1] = s.name
        rules[#rules + 1] = rule_of[s.name]
    end
end

local function commit_dead()
    for i, d in ipairs(dead) do
        bury(string.format('%s:%d.d%d', worker, turn, i), d.lane, d.reason, d.entry)
        if d.name then -- counted as run, so that what waits and runs stays right
            count(d.name, 'pulled', 1)
            count(d.name, 'dead', 1)
        end
    end
end

local function commit(used)
    if #leases > 0 then push('HSET', P .. 'active:' .. worker, leases) end
    commit_dead()
    local wake, unwake = {}, {}
    for _, queue in ipairs(queues) do wake[queue], unwake[queue] = {}, {} end
    for _, s in ipairs(order) do commit_lane(s, wake[s.queue], unwake[s.queue]) end
    for _, queue in ipairs(queues) do
        if #wake[queue] > 0 then push('ZADD', P .. 'wake:' .. queue, wake[queue]) end
        if #unwake[queue] > 0 then push('ZREM', P .. 'wake:' .. queue, unwake[queue]) end
    end
    for _, gate in pairs(gates) do
        if gate and gate ~= CLOSED then gate_save(gate) end
    end
    for queue, n in pairs(used) do
        if n > 0 then call('LTRIM', P .. 'queue:' .. queue, n, -1) end
    end
    for _, s in ipairs(order) do commit_counters(s) end
end
