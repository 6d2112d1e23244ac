-- wake: what waits at a gate in any queue becomes due, as something makes room there. Jobs are moved in the same call, so nothing here may fail.
--
--   at:<gate>             queues that have a type or lane waiting at a gate, to be woken when something makes room there: every one where
--                         only that opens the gate; where time does, too, see may_be_woken in claim_wait. Lines of callers (line.lua)
--                         join as there is room. Who is woken leaves
--   opened                gates that have room while not all of their queues are woken yet. In these two <limit>#* stands for all gates that a
--                         limit can have for all keys, as somebody has changed it, and * for all of all limits
--
-- uses: bell check gate lease line
local wake = {}

local WOKEN_MOST = 300  -- queues that one call wakes, about 5 us each, 8 where each has a group of workers of its own
local WAKE_US = 1000    -- it ends sooner where the queues behind the first ones take so long
local AT_ONCE = 25      -- queues that are taken off a list at once
local SPARE = 3         -- queues that are woken beyond the slots that jobs give back: some have nothing that fits, or nobody who serves them
local SPARE_ENDED = 20  -- queues that are woken beyond them at a gate that opens as jobs end, and for no other reason
local GATES_SHARE = 20  -- so many gates that a queue has due count as one more queue
local TIMES_SHARE = 2   -- a queue that is asked for all gates of a limit counts as so many
local AT_MS = 3600000   -- a queue is listed for so long at a gate of a key that opens by time: its own wake-up comes before

local opened = {} -- gates that this call has opened, and for each how many queues are enough to take its slots

local function forget_opened() opened = {} end

-- Lists a queue of which a type or lane waits at a gate until something makes room there. by_time: it also opens without that, but later. False:
-- its key is of a wrong kind.
function wake.list_queue(queue, name, by_time)
    local at = P .. 'at:' .. name
    if type(call_safe('SADD', at, queue)) ~= 'number' then return false end
    if VIRTUAL or not find(name, '/', 1, true) then return true end
    if by_time then call('PEXPIRE', at, AT_MS) else call('PERSIST', at) end
    return true
end

local FEW = 8 -- queues

local few -- all queues where they are few, else none; as this call has read them

local function forget_few() few = nil end

local function few_queues()
    if few then return few end
    at_next_call(forget_few)
    local n = call_safe('SCARD', P .. 'queues')
    few = type(n) == 'number' and n <= FEW and call('SMEMBERS', P .. 'queues') or {}
    return few
end

-- Lists who may wait at a gate where a job of the queue (nil: what is no job) gives something back, as nobody has listed it: where there are few
-- queues, any may wait.
function wake.list_at(queue, name)
    local queues = few_queues()
    if #queues > 0 then call_safe('SADD', P .. 'at:' .. name, unpack(queues)) end
    if queue then wake.list_queue(queue, name, true) end
end

-- Lists the lines of callers that wait at a gate, to be woken too. Returns how many there are.
local function list_lines(name)
    local lines = line.at(name)
    for i = 1, #lines, 4000 do call_safe('SADD', P .. 'at:' .. name, unpack(lines, i, min(i + 3999, #lines))) end
    return #lines
end

local has_lines       -- true when this call has found that some caller stands in line
local with_lines = {} -- gates at which callers do

local function forget_lines() has_lines, with_lines = nil, {} end

-- Lists the lines at a gate where a job gives something back.
function wake.list_lines_at(name)
    if has_lines == nil then
        at_next_call(forget_lines)
        has_lines = call('EXISTS', P .. 'lines') == 1
    end
    if has_lines and list_lines(name) > 0 then with_lines[name] = true end
end

local function open(name, spare)
    if #opened == 0 then at_next_call(forget_opened) end
    if not opened[name] then opened[#opened + 1] = name end
    opened[name] = (opened[name] or spare) + 1
end

-- Notes that a gate has room again: wake.all wakes what waits there.
function wake.opened(name) open(name, SPARE) end

local PLACES = 8 -- rules of one limit: gates <limit>#0 to #7
local ALL = '*'

-- Returns the gates of a limit and when they are due, as ZADD takes them, where a name stands for all gates; nil: it does not.
local function times_of(name)
    local limit, times = match(name, '^(.+#)%*$'), {}
    for i = 0, limit and PLACES or -1 do times[#times + 1], times[#times + 2] = us(now), limit .. (i < PLACES and i or 'pause') end
    return limit and times
end

-- Returns how many gates of the queue are due now.
local function wake_at(queue, name, times)
    local due, asleep, woken = P .. 'wake:' .. queue, find(name, '/', 1, true), nil
    if name == ALL then
        woken = call_safe('ZUNIONSTORE', due, '1', due, 'WEIGHTS', '0')
    elseif times then
        woken = call_safe('ZADD', due, 'XX', 'CH', 'LT', unpack(times))
    else
        woken = call_safe('ZADD', P .. (asleep and 'sleep:' or 'wake:') .. queue, 'XX', 'CH', us(now), name)
    end
    if type(woken) ~= 'number' then return 0 end
    if asleep and woken > 0 then call_safe('ZADD', due, 'LT', us(now), '*') end
    return woken
end

-- Notes that a gate may open now for waiters of any queue, as somebody has changed a limit: wake.all sees to it.
function wake.opened_everywhere(name)
    call_safe('SUNIONSTORE', P .. 'at:' .. name, P .. 'at:' .. name, P .. 'queues')
    list_lines(name)
    call_safe('SADD', P .. 'opened', name)
end

local LINE = 33 -- "!"

-- Wakes a line that is listed at a gate, or leaves it there, where so much was done before that nothing is left to do. Returns how much it was.
local function wake_line(name, member, left)
    local looked_at, more = 0, left < 1
    if not more then looked_at, more = line.wake(member) end
    if more then call_safe('SADD', P .. 'at:' .. name, member) end
    return looked_at
end

-- Takes at most `most` queues that wait at a gate off its list, chosen at random.
local function take_waiting(name, most)
    local queues = call_safe('SPOP', P .. 'at:' .. name, digits(most))
    return queues.err and {} or queues
end

-- Makes due what waits at the gates that were opened, and wakes the groups that serve it. Of many queues a job wakes a few: who serves several
-- finds there what is left for the others. All that is too much for one call is left to the next one that opens a gate, and to heartbeats
-- (rest). Returns whether something is left.
function wake.all(rest)
    if #opened == 0 and not rest then return false end
    local of_jobs = #opened
    local left = call_safe('SPOP', P .. 'opened', digits(WOKEN_MOST))
    for _, name in ipairs(left.err and {} or left) do wake.opened(name) end
    local woken, any, most, more, late_us = {}, false, WOKEN_MOST, false, nil
    for i, name in ipairs(opened) do
        local times, asked, queues = times_of(name), nil, nil
        local enough = not (rest or i > of_jobs or with_lines[name]) and opened[name] or huge
        local others_wait = enough > SPARE_ENDED -- they need to be woken: the gate opens for no other reason
        repeat
            asked = max(0, min(most, AT_ONCE, enough))
            queues = asked > 0 and take_waiting(name, asked) or {}
            for _, queue in ipairs(queues) do
                if byte(queue) == LINE then
                    most = most - wake_line(name, queue, most)
                else
                    local gates = wake_at(queue, name, times)
                    if gates > 0 then woken[queue], any, enough = true, true, enough - 1 end
                    most = most - (times and TIMES_SHARE or 1) - floor(gates / GATES_SHARE)
                end
            end
            if #queues == asked and asked > 0 then -- there are many
                late_us = late_us or passed_us() + WAKE_US
                if passed_us() > late_us then most = 0 end
            end
        until #queues < asked or most < 1 or enough < 1
        if (most < 1 or enough < 1 and others_wait) and call('EXISTS', P .. 'at:' .. name) == 1 then
            call_safe('SADD', P .. 'opened', name)
            more = true
        end
    end
    if any then bell.ring_all(woken) end
    return more
end

-- Gives back what the token of a lease that ends took of concurrency gates. A key of a wrong kind counts nothing.
function wake.release(token)
    if not find(token, '~', 1, true) then return end
    for name in lease.gates_of(token) do
        if not check.wrong_kind('gate:' .. name, 'string') then
            gate.release(name)
            open(name, SPARE_ENDED)
        end
    end
end

return wake
