-- settle: jobs that a worker has finished leave its leases, each by its verb; what they took of concurrency gates is given back.
-- A lease that is no longer the worker's (it was reaped, or settled before) changes nothing and is counted. Where a key holds
-- something else, nothing is settled.
--
-- KEYS[1] prefix
-- ARGV: now, worker, then any number of
--         "done"  type n token * n
--         "retry" token delay_us ""        one more attempt used; runs again after the delay
--         "throttled" token delay_us ""    the provider said stop: its limits pause that long (-1: it gave no time), for its key
--                                          where they are keyed; back to the head of its lane, no attempt used
--         "back"  token "0" ""             handed back to the head of its lane as it is
--         "dead"  token "0" reason
--         "cost"  token n ""               ends nothing: the job cost n in truth; its gates take or give back the difference
-- reply: the number of stale leases
-- time: when needed
--
-- uses: bell check gate lane lease stop types

-- The end of the group of done jobs that begins at ARGV[i]; nil when it is none.
local function done_end(ARGV, i)
    local n = tonumber(ARGV[i + 2])
    if is_whole(n, 1) and n <= 4000 and i + 2 + n <= #ARGV and is_name(ARGV[i + 1]) then return i + 2 + n end
end

local function counts_in_flight(ARGV, first, last)
    for i = first, last do
        if find(ARGV[i], '~', 1, true) then return true end
    end
end

local function end_counted(active, token)
    local ended = call('HDEL', active, token)
    if ended == 1 then lane.release(token) end
    return ended
end

-- Ends the leases ARGV[first] to ARGV[last] of a type; returns how many of them were stale.
local function end_done(ARGV, active, name, first, last)
    local ended = 0
    if counts_in_flight(ARGV, first, last) then
        if not now then read_clock(ARGV[1]) end
        for i = first, last do ended = ended + end_counted(active, ARGV[i]) end
    else
        ended = call('HDEL', active, unpack(ARGV, first, last))
    end
    if ended > 0 then lease.count(name, 'done', ended) end
    return last - first + 1 - ended
end

local function put_later(job, entry)
    local record = 'l ' .. job.tag .. ' ' .. job.lane .. '\n' .. entry
    call('ZADD', P .. 'later', us(now + job.delay_us), record)
    lease.count(job.type, 'scheduled', 1)
    if call('ZRANGE', P .. 'later', 0, 0)[1] == record then bell.ring(job.queue) end
end

local verbs = {}

function verbs.retry(job)
    local attempts, interrupted, throttled, body = lease.entry_read(job.entry)
    put_later(job, lease.entry_write(attempts + 1, interrupted, throttled, body))
    lease.count(job.type, 'retried', 1)
end

local function bury_stopped(job)
    lease.bury(job.tag, job.lane, 'throttled for a day, and its attempts are used up', job.entry)
    lease.count(job.type, 'dead', 1)
end

function verbs.throttled(job, back)
    local attempts, interrupted, throttled, body = lease.entry_read(job.entry)
    local pause_us, attempt_used = stop.record(job.type, job.key, job.delay_us)
    if attempt_used then
        attempts = attempts + 1
        if attempts >= stop.max_attempts(body) then return bury_stopped(job) end
    end
    job.entry = lease.entry_write(attempts, interrupted, throttled + 1, body)
    lease.count(job.type, 'back', 1)
    if stop.pause(job.type, job.key, pause_us) then
        back[#back + 1] = job
    else
        job.delay_us = pause_us
        put_later(job, job.entry)
    end
end

function verbs.dead(job)
    lease.bury(job.tag, job.lane, job.reason, job.entry)
    lease.count(job.type, 'dead', 1)
end

function verbs.back(job, back)
    back[#back + 1] = job
    lease.count(job.type, 'back', 1)
end

-- The job cost that much in truth.
function verbs.cost(job)
    local difference = job.delay_us - lease.cost_of(job.token)
    for _, e in ipairs(types.gates(job.type, job.key)) do
        if difference > 0 then gate.charge(e.g, difference) end
        if difference < 0 then
            gate.give(e.g, lease.slot_of(job.token), -difference)
            lane.opened(e.name)
        end
    end
end

-- Reads one verb that is no "done"; returns what is wrong with it.
local function read_end(ARGV, i, ends, costs)
    local verb, token, n = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
    if not verbs[verb] then return 'settle: unknown verb ' .. tostring(verb) end
    local of_lane = i + 3 <= #ARGV and lease.lane_of(token)
    if not of_lane or not is_whole(n, verb == 'throttled' and -1 or 0) then
        return 'settle: ' .. verb .. ' needs a token, a number, a reason'
    end
    local queue, name, key = lease.lane_parts(of_lane)
    local list = verb == 'cost' and costs or ends
    list[#list + 1] = {verb = verb, token = token, tag = ARGV[2] .. ':' .. lease.token_head(token), delay_us = n,
                       lane = of_lane, queue = queue, type = name, key = key, reason = ARGV[i + 3]}
end

-- Fills done with the places of groups of done jobs (first, last, first, ...), costs and ends with all others.
local function read_arguments(ARGV, done, ends, costs)
    local i = 3
    while i <= #ARGV do
        if ARGV[i] == 'done' then
            local last = done_end(ARGV, i)
            if not last then return 'settle: done needs a type, a number, that many tokens' end
            done[#done + 1] = i + 3
            done[#done + 1] = last
            i = last + 1
        else
            local wrong = read_end(ARGV, i, ends, costs)
            if wrong then return wrong end
            i = i + 4
        end
    end
end

-- Those of ends whose lease is there, with its entry, and their tokens.
local function read_leases(active, ends)
    local leaving, tokens = {}, {}
    for _, job in ipairs(ends) do
        job.entry = not tokens[job.token] and call('HGET', active, job.token)
        if job.entry then
            leaving[#leaving + 1], tokens[#tokens + 1] = job, job.token
            tokens[job.token] = true
        end
    end
    return leaving, tokens
end

local function wrong_keys(leaving)
    local wrong
    for _, job in ipairs(leaving) do
        if job.verb == 'back' or job.verb == 'throttled' then wrong = wrong or lane.wrong(job.lane) end
        if job.verb == 'throttled' then
            wrong = wrong or stop.wrong(job.type, job.key) or check.wrong_kind('dead', 'zset')
        end
        if job.verb ~= 'back' then
            wrong = wrong or check.wrong_kind(job.verb == 'dead' and 'dead' or 'later', 'zset')
        end
    end
    return wrong
end

-- Ends what is no "done"; returns how many leases were stale, or nil and what is wrong: then nothing was changed.
local function settle_ends(worker, ends)
    local active = P .. 'active:' .. worker
    local wrong = check.wrong_kind('active:' .. worker, 'hash')
    if wrong then return nil, wrong end
    local leaving, tokens = read_leases(active, ends)
    wrong = wrong_keys(leaving)
    if wrong then return nil, wrong end
    local back = {}
    for _, job in ipairs(leaving) do verbs[job.verb](job, back) end
    for _, job in ipairs(leaving) do lane.release(job.token) end
    lane.give_all_back(back)
    push('HDEL', active, tokens)
    return #ends - #leaving
end

-- True costs, of leases that are there; returns what is wrong: then nothing was changed.
local function settle_costs(worker, costs)
    local wrong, found = check.wrong_kind('active:' .. worker, 'hash'), {}
    for _, job in ipairs(wrong and {} or costs) do
        if call('HEXISTS', P .. 'active:' .. worker, job.token) == 1 then
            wrong = wrong or types.wrong(job.type, job.key)
            found[#found + 1] = job
        end
    end
    if wrong then return wrong end
    for _, job in ipairs(found) do verbs.cost(job) end
end

local function settle(ARGV)
    local worker, done, ends, costs = ARGV[2], {}, {}, {}
    if not worker then return refuse('settle: no worker') end
    local wrong, stale = read_arguments(ARGV, done, ends, costs), 0
    if wrong then return refuse('%s', wrong) end
    if #costs + #ends > 0 then read_clock(ARGV[1]) end -- most settle says nothing but "done"
    if #costs > 0 then
        wrong = settle_costs(worker, costs)
        if wrong then return check.refuse_key(wrong) end
    end
    if #ends > 0 then
        stale, wrong = settle_ends(worker, ends)
        if wrong then return check.refuse_key(wrong) end
    end
    for i = 1, #done, 2 do
        stale = stale + end_done(ARGV, P .. 'active:' .. worker, ARGV[done[i] - 2], done[i], done[i + 1])
    end
    gate.save()
    return stale
end

return settle
