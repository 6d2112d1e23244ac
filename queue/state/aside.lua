-- aside: jobs of paused batches that claims set aside, as they leave that place.
--
--   aside:<batch>  list of "<lane>\n<entry>": what claim met while it was paused, in that order
--
-- uses: bell check counters ends lane_names large sign slices time_budget
local aside = {}

local function read_record(record)
    local ends_at = find(record, '\n', 1, true)
    local queue, kind = lane_names.parts(ends_at and match(sub(record, 1, ends_at - 1), '^(%S+) ?$') or '')
    if is_name(queue) then return {queue = queue, type = kind, entry = sub(record, ends_at + 1)} end
end

local NAMES_MOST = 50 -- queues and types of one page, about: 5 us each, 15 on a slow machine
local READ_US = 700   -- when no more are read: what is done with them takes twice as long
local AT_ONCE = 25    -- records between two looks at that

-- Reads up to `most` of the jobs aside, fewer where they are of many queues and types, the last one first, {queue =, type =, entry =} each, and the
-- records that cannot be read.
function aside.read(name, most)
    local jobs, unread, known, count, load, passed, all = {}, {}, {}, 0, slices.load(), 0, false
    local function meet(word)
        if not known[word] then known[word], count = true, count + 1 end
    end
    while not all and passed < most and count < NAMES_MOST and not slices.is_full(load) do
        local records
        records, all = slices.last(P .. 'aside:' .. name, min(most - passed, AT_ONCE), load, passed)
        passed = passed + #records
        all = all or time_budget.is_late(READ_US)
        for _, record in ipairs(records) do
            local job = read_record(record)
            if job then jobs[#jobs + 1] = job else unread[#unread + 1] = record end
            if job then
                meet(job.queue .. '/')
                meet(job.type)
            end
        end
    end
    return jobs, unread
end

-- Takes these jobs off the list, and buries the records that cannot be read.
function aside.trim(name, jobs, unread)
    for i, record in ipairs(unread) do
        ends.bury('aside:' .. us(now) .. '.' .. i, '//', 'its record in aside:' .. name .. ' cannot be read', record)
    end
    call('LTRIM', P .. 'aside:' .. name, '0', us(-#jobs - #unread - 1))
end

-- Counts jobs by type, n for each, in that counter.
function aside.count(jobs, what, n)
    local counts = {}
    for _, job in ipairs(jobs) do counts[job.type] = (counts[job.type] or 0) + n end
    for name, all in pairs(counts) do
        if is_name(name) then counters.add(name, what, all) end
    end
end

local function to_heads(jobs, seed)
    local queues, rung = {}, {}
    for _, job in ipairs(jobs) do
        queues[job.queue] = queues[job.queue] or {}
        queues[job.queue][#queues[job.queue] + 1] = sign.write(job.entry, seed)
    end
    for queue, entries in pairs(queues) do
        push('LPUSH', P .. 'queue:' .. queue, entries)
        call('SADD', P .. 'queues', queue)
        for _, entry in ipairs(entries) do large.note(queue, entry) end
        rung[queue] = true
    end
    bell.ring_all(rung)
end

-- Says what is wrong with the keys of a batch and of its jobs aside that give_back writes; nil: nothing.
function aside.wrong(name)
    return check.wrong_kind('batch:' .. name, 'hash') or check.wrong_kind('halted', 'hash') or check.wrong_kind('aside:' .. name, 'list')
        or check.wrong_kind('queues', 'set') or check.wrong_kind('dead', 'zset') or sign.wrong()
end

-- Ends the pause of a batch, where it is paused (was), and returns a page of what is aside to the head of its queues, the last jobs first: all stand there
-- in their order when all pages have returned. seed: see sign. Returns how many, or nil and what is wrong with a key of their queues.
function aside.give_back(name, was, most, seed)
    local jobs, unread = aside.read(name, most)
    for _, job in ipairs(jobs) do
        local wrong = check.wrong_kind('queue:' .. job.queue, 'list')
        if wrong then return nil, wrong end
    end
    if was == 'paused' then
        call('HDEL', P .. 'halted', 'b/' .. name)
        ends.keep(name, ends.KEPT_MS, true)
    end
    to_heads(jobs, seed)
    aside.count(jobs, 'enqueued', 1)
    aside.count(jobs, 'set_aside', -1)
    aside.trim(name, jobs, unread)
    if was == 'paused' then ends.look(name) end
    return #jobs
end

-- Ends the pause of a batch whose time is over, a page a call. Returns how many jobs went back, and how many are still aside; nil: its keys do not allow
-- that yet.
function aside.follow(name, most)
    if aside.wrong(name) or not sign.is_ready() and call('EXISTS', P .. 'aside:' .. name) == 1 then return nil end
    local was = match(call('HGET', P .. 'halted', 'b/' .. name) or '', '^%a*')
    local returned = aside.give_back(name, was, most)
    return returned, returned and call('LLEN', P .. 'aside:' .. name)
end

return aside
