-- claim: the heart of a turn. First every key is read and every decision made, then all is written: a script that fails
-- while it reads has changed nothing.
--
-- For each queue, in order: the types that are due are served from their lanes; then jobs are looked at from the head of
-- the queue and each takes its slot: granted, it is leased to this worker; denied, it is parked in its lane until the
-- gate opens; of a type that this worker cannot run, it is parked and the type held. While a queue holds jobs, its lanes
-- get half of the executors.
--
-- KEYS[1] prefix
-- ARGV: now, worker, group, turn,
--       free         idle executors: a job with a limit is granted against one of them only
--       prefetch     jobs without a limit that may be leased beyond those
--       look         how many jobs of a queue to read at first (the worker knows how large they are)
--       duty_until   until when this worker holds the pacing duty of its group, us; 0: it does not
--       options      letters: h look at held types, d unknown types are dead, m mark the rates of this second
--       n, queue * n, type * the rest (the types that this worker can run)
-- reply: [ now, next, later, duty_until, more (0/1), [token, entry, ...], [type, rule, ...],
--          [type that was set aside, ...], [limit whose rule cannot be read, ...] ]
--        next: when a gate opens for what is parked, later: when a scheduled job is due; '' for never
--        more: there was more than could be taken
-- uses: core/base.lua core/bell.lua throttle/gate.lua queue/check.lua queue/lease.lua queue/lane.lua

local BUDGET = 500              -- jobs looked at in one claim: 2 ms, well within the 5 ms that slots are granted ahead
local BYTES = 8 * 1024 * 1024  -- of bodies read in one claim
local BODY_MAX = 1024 * 1024   -- JOB_BODY_MAX of queue/job.h
local DUE_MOST = 64            -- types looked at in wake
local ROOM_MOST = 2000         -- of free and of prefetch: a turn has 4096 tokens
local DUTY_US = 2000000        -- the pacing duty passes to another when its holder is silent for that long
local MARK_US = 1000000        -- rates are measured over about a second

local worker, group, turn = ARGV[2], ARGV[3], tonumber(ARGV[4])
local free, prefetch, look = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local duty_until, options = tonumber(ARGV[8]), ARGV[9]
local queues, mine = {}, {}

local function read_arguments()
    local n, seen = tonumber(ARGV[10]), {}
    if not (is_whole(turn) and is_whole(duty_until) and is_whole(n)) then return 'claim: wrong arguments' end
    if n < 1 or #ARGV < 10 + n then return 'claim: wants n queues and the types' end
    if not (is_whole(free) and is_whole(prefetch) and is_whole(look, 1)) or look > 1000 then
        return 'claim: free, prefetch or look out of range'
    end
    for i = 11, 10 + n do
        if not is_name(ARGV[i]) or seen[ARGV[i]] then return 'claim: a queue is no name, or named twice' end
        seen[ARGV[i]] = true
        queues[#queues + 1] = ARGV[i]
    end
    for i = 11 + n, #ARGV do mine[ARGV[i]] = true end
    if call('HEXISTS', P .. 'active:' .. worker, '@') == 0 then return 'unregistered: worker ' .. worker end
end

local wrong = read_arguments()
if wrong then return refuse('%s', wrong) end
free, prefetch = min(free, ROOM_MOST), min(prefetch, ROOM_MOST)

-- What was decided, written by commit(). leases: token, entry, token, entry ...
local leases, dead, rules, aside, broken = {}, {}, {}, {}, {}
local index, bytes, budget, more = 0, 0, BUDGET, 0

-- Tokens of this turn: its number and two digits of base 64, in ASCII order. Formatting a number would take longer than all the
-- rest of a grant.
local ALPHABET = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
local find, sub = string.find, string.sub
local high, low, token_head = 0, 64, nil
local function next_token(tail)
    if low == 64 then
        high, low = high + 1, 0
        token_head = us(turn) .. '.' .. sub(ALPHABET, high, high)
    end
    low = low + 1
    return token_head .. sub(ALPHABET, low, low) .. tail
end

---------------------------------------------------------------------------------------------------- types and gates

local CLOSED = {} -- the gate of a limit whose rule cannot be read: nothing starts, the type is reported
local gates, rule_of = {}, {}
local states, order = {}, {} -- states[queue][type]

local function gate_of(name)
    if gates[name] == nil then
        local rule = call('HGET', P .. 'limits', name)
        gates[name] = rule and (gate_load(name .. '#0', rule) or CLOSED)
        rule_of[name] = rule
        if gates[name] == CLOSED then broken[#broken + 1] = name end
    end
    return gates[name]
end

-- One type in one queue, as this claim sees it.
local function state_of(queue, name)
    local s = states[queue][name]
    if not s then
        local lane = queue .. '/' .. name .. '/'
        s = {queue = queue, name = name, lane = lane, tail = '/' .. lane, gate = gate_of(name),
             taken = 0, parked = {}, pulled = 0, left = nil, woken = nil, direct = nil}
        states[queue][name] = s
        order[#order + 1] = s
    end
    return s
end

local function lane_is_empty(s)
    if s.left == nil then s.left = call('LLEN', P .. 'lane:' .. s.lane) > 0 end
    return not s.left and #s.parked == 0
end

local function opening(s)
    if s.gate == CLOSED then return math.huge end
    return s.gate and gate_start(s.gate, 1) or now
end

-- How many jobs of s could be leased, whatever its gate says.
local function room_of(s) return s.gate and free or free + prefetch end

local function lease(token, entry)
    index = index + 2
    leases[index - 1], leases[index] = token, entry
    bytes = bytes + #entry
end

-- Leases a job without a limit; unsafe: it must have an executor of its own.
local function grant_free(s, entry, unsafe)
    lease(next_token(s.tail), entry)
    if prefetch > 0 and not unsafe then prefetch = prefetch - 1 else free = free - 1 end
end

-- Leases a job with a limit: it takes its slot.
local function grant_slot(s, entry, start)
    gate_take(s.gate, start, 1, 1)
    if start ~= s.slot then s.slot, s.slot_tail = start, '@' .. us(start) .. s.tail end
    lease(next_token(s.slot_tail), entry)
    free = free - 1
end

-------------------------------------------------------------------------------------------------------------- lanes

-- How many of n jobs could start within the time that is granted ahead; tried on a copy of the gate.
local function slots_ahead(s, n)
    if not s.gate then return n end
    if s.gate == CLOSED then return 0 end
    local start = gate_start(s.gate, 1)
    if start > now + AHEAD then return 0 end
    if gate_count(s.gate, start, n, 1) >= n then return n end
    local g, k = {}, 0
    for field, value in pairs(s.gate) do g[field] = value end
    while k < n do
        start = gate_start(g, 1)
        if start > now + AHEAD then break end
        gate_take(g, start, 1, 1)
        k = k + 1
    end
    return k
end

-- Grants up to `most` jobs from the head of the lane.
local function serve(s, most)
    local n = slots_ahead(s, min(most, room_of(s), look))
    if n < 1 or bytes > BYTES then return end
    local entries = call('LRANGE', P .. 'lane:' .. s.lane, s.taken, s.taken + n) -- one more: is anything left?
    s.left = #entries > n
    for i = 1, min(n, #entries) do
        -- A job that was running when its worker died is not prefetched: those leased beside it would share its blame.
        local _, interrupted = entry_read(entries[i])
        if interrupted > 0 and free < 1 then
            s.left = true
            return
        end
        if s.gate then
            grant_slot(s, entries[i], gate_start(s.gate, 1))
        else
            grant_free(s, entries[i], interrupted > 0)
        end
        s.taken = s.taken + 1
    end
end

-- The types in wake, soonest first: {state, ...} of those that are due, and the time at which the next one is.
local function due_types(queue)
    local wake = call('ZRANGE', P .. 'wake:' .. queue, 0, DUE_MOST - 1, 'WITHSCORES')
    local due = {}
    for i = 1, #wake, 2 do
        local at = tonumber(wake[i + 1])
        if at > now + AHEAD then return due, at end
        local s = state_of(queue, wake[i])
        s.left, s.woken = true, at
        due[#due + 1] = s
    end
    if #due == DUE_MOST then more = 1 end
    return due, math.huge
end

local function serve_due(due)
    local share = max(1, ceil((free + prefetch) / max(1, #due)))
    for _, most in ipairs({share, math.huge}) do
        for _, s in ipairs(due) do
            if s.left and mine[s.name] then serve(s, most) end
        end
    end
end

------------------------------------------------------------------------------------------------------------- queues

-- The type of a job as Weir's producers write it, id and type first; nil when it is written otherwise. An odd job that this
-- misreads is found by the worker, which reads the whole.
local function quick_type(body)
    if sub(body, 1, 7) ~= '{"id":"' then return nil end
    local quote = find(body, '"', 8, true)
    if not quote or sub(body, quote, quote + 9) ~= '","type":"' then return nil end
    local name = sub(body, quote + 10, (find(body, '"', quote + 10, true) or 0) - 1)
    return (mine[name] or #name <= 128 and find(name, '^[%w_.-]+$')) and name
end

-- The type of a job and its body, with an id if it had none; or nil and what is wrong with it.
local function read_job(body)
    if #body > BODY_MAX then return nil, string.format('larger than %d bytes', BODY_MAX) end
    local name = quick_type(body)
    if name then return name, body end
    local ok, job = pcall(cjson.decode, body)
    if not ok then return nil, 'no JSON: ' .. tostring(job) end
    if type(job) ~= 'table' or not find(body, '^%s*{') then return nil, 'no JSON object' end
    name = job.type
    if type(name) ~= 'string' or #name > 128 or not find(name, '^[%w_.-]+$') then
        return nil, 'its type is missing or no name'
    end
    if job.id == nil then
        body = string.format('{"id":"%s.%d.%d",', worker, turn, BUDGET - budget) .. body:match('^%s*{(.*)$')
    end
    return name, body
end

local function bury_unknown(s, body)
    dead[#dead + 1] = {name = s.name, lane = s.lane, reason = 'this worker has no handler for its type', entry = body}
end

-- What becomes of one job at the head of a queue. False: it stays there until an executor is free for it.
local function place(queue, body)
    local name, text = read_job(body)
    if not name then
        dead[#dead + 1] = {lane = queue .. '//', reason = 'unreadable: ' .. text, entry = body}
        return true
    end
    local s = states[queue][name] or state_of(queue, name)
    if s.direct == nil then s.direct = mine[name] and not s.gate and lane_is_empty(s) or false end
    if s.direct then
        grant_free(s, text)
        s.pulled = s.pulled + 1
        return true
    end
    if not mine[name] and options:find('d', 1, true) then
        bury_unknown(s, text)
        return true
    end
    if mine[name] and s.gate and lane_is_empty(s) then
        local start = opening(s)
        if start <= now + AHEAD then
            if free < 1 then return false end
            grant_slot(s, text, start)
            s.pulled = s.pulled + 1
            return true
        end
    end
    s.parked[#s.parked + 1] = text
    bytes = bytes + #text
    return true
end

-- Looks at jobs from the head of the queue while there is room; returns how many leave it.
local function read_queue(queue, jobs)
    local used, chunk = 0, look
    while true do
        local room = free + prefetch
        for i, body in ipairs(jobs) do
            if free + prefetch < 1 or budget < 1 or bytes > BYTES or not place(queue, body) then
                more = 1
                return used + i - 1
            end
            budget = budget - 1
        end
        used = used + #jobs
        if #jobs < chunk then return used end
        if free + prefetch < 1 or budget < 1 then
            more = 1
            return used
        end
        chunk = min(1000, budget, max(free + prefetch, free + prefetch == room and chunk * 2 or 16))
        jobs = call('LRANGE', P .. 'queue:' .. queue, used, used + chunk - 1)
    end
end

-- Serves one queue; returns how many jobs leave it and when the first untouched type in wake is due.
local function serve_queue(queue)
    local due, after = due_types(queue)
    local jobs = free + prefetch > 0 and call('LRANGE', P .. 'queue:' .. queue, 0, look - 1) or {}
    if #due > 0 then
        local kept, kept_prefetch = 0, 0 -- for what stands in the queue
        if #jobs > 0 then
            kept = free == 1 and turn % 2 or floor(free / 2)
            kept_prefetch = floor(prefetch / 2)
        end
        free, prefetch = free - kept, prefetch - kept_prefetch
        serve_due(due)
        free, prefetch = free + kept, prefetch + kept_prefetch
    end
    local used = #jobs > 0 and read_queue(queue, jobs) or 0
    if #due > 0 and free + prefetch > 0 then serve_due(due) end
    return used, after
end

------------------------------------------------------------------------------------------------------------- commit

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
    local first = 0
    for what, n in pairs({pulled = s.pulled, parked = #s.parked, served = s.taken}) do
        if n > 0 and count(s.name, what, n) == n then first = first + 1 end
    end
    if first > 0 then redis.pcall('HSETNX', P .. 'types', s.name, '') end
    if s.pulled + s.taken > 0 then
        if options:find('m', 1, true) then mark_rate(s.name) end
        if s.gate then
            rules[#rules + 1] = s.name
            rules[#rules + 1] = rule_of[s.name]
        end
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

--------------------------------------------------------------------------------------------------------- what is next

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

-- The pacing duty: one worker of the group with a free executor keeps the timer and watches the queues. Who has none left
-- passes it on; who has some takes it when nobody holds it. By now the leases are written: a duty that holds something else is
-- passed over, as bell_ring does.
local function duty(at, news)
    local mine_still = duty_until > now and duty_until <= now + DUTY_US
    if free < 1 then
        if mine_still then redis.pcall('HDEL', P .. 'duty', group) end
        if more == 1 or mine_still and at < math.huge then ring_spare() end
        duty_until = 0
    elseif not mine_still or duty_until - now < DUTY_US / 2 then
        local held = redis.pcall('HGET', P .. 'duty', group)
        local holder, till = (type(held) == 'string' and held or ''):match('^(%S+) (%d+)')
        till = tonumber(till)
        if not holder or holder == worker or till <= now or till > now + DUTY_US then
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

if options:find('h', 1, true) then
    for _, queue in ipairs(queues) do take_back(queue) end
end
local used, after = {}, {}
for _, queue in ipairs(queues) do
    states[queue] = {}
    used[queue], after[queue] = serve_queue(queue)
end
wrong = wrong_keys()
if wrong then return refuse_key(wrong) end
commit(used)
local at, later, news = next_times(after)
duty(min(at, later), news)
local function text(time) return time < math.huge and us(time) or '' end
return {us(now), text(at), text(later), us(duty_until), more, leases, rules, aside, broken}
