-- away: jobs that a claim has met here and whose type lives on another partition. A worker carries them over: away_read, away_arrive there,
-- away_done here. Each step may be repeated. Records are numbered, and the other partition takes only those behind the last one that it took
-- from here.
--
--   away:<p>  list of "<number> <queue> <type>\n<entry>", for partition p, in the order of their numbers
--   about     hash: away -> the last number. Numbers are times where they can be: so they grow, though Redis may have lost the last one
--   arrived   hash: partition -> the number of the last record that came from there
--
-- uses: check ends lease partition
local away = {}

-- What is wrong with the keys that send() writes; nil: nothing. jobs: {to =, queue =, type =, entry =} each.
function away.wrong(jobs)
    local wrong = check.wrong_kind('about', 'hash')
    for _, job in ipairs(jobs) do wrong = wrong or check.wrong_kind('away:' .. job.to, 'list') end
    return wrong
end

-- Room for so many more records; returns the number before them.
local function take_numbers(n)
    local number = max(lease.counted(call('HGET', P .. 'about', 'away')), now - 1)
    call('HSET', P .. 'about', 'away', us(number + n))
    return number
end

-- These jobs have left their places here; their types, which may be known by nothing else, are counted here. A batch counts what leaves it as cancelled, so that it can end: its jobs have one partition.
function away.send(jobs)
    local number, records = take_numbers(#jobs), {}
    for i, job in ipairs(jobs) do
        local list = records[job.to] or {}
        list[#list + 1] = us(number + i) .. ' ' .. lease.usual_queue(job.queue) .. ' ' .. job.type .. '\n' .. job.entry
        records[job.to] = list
    end
    for to, list in pairs(records) do push('RPUSH', P .. 'away:' .. to, list) end
    for _, job in ipairs(jobs) do
        ends.jobs({job.entry}, 'cancelled')
        call_safe('HSETNX', P .. 'types', job.type, '')
    end
end

-- The partitions of these jobs.
function away.targets(jobs)
    local found, known = {}, {}
    for _, job in ipairs(jobs) do
        if not known[job.to] then found[#found + 1] = us(job.to) end
        known[job.to] = true
    end
    return found
end

-- The partitions for which there are such jobs.
function away.waiting()
    local found = {}
    for p = 0, partition.count() - 1 do
        if partition.count() > 1 and call('EXISTS', P .. 'away:' .. p) == 1 then found[#found + 1] = us(p) end
    end
    return found
end

-- How many jobs there are.
function away.count()
    local jobs = 0
    for p = 0, partition.count() - 1 do
        if partition.count() > 1 then jobs = jobs + call('LLEN', P .. 'away:' .. p) end
    end
    return jobs
end

-- The number, queue and type of a record, and where its entry begins; nil: it is none. queue: MOVES: lines begin there.
function away.read(record)
    local number, queue, name, at = match(record, '^(%d+) ([%w_.-]+) ([%w_.-]+)\n()')
    return tonumber(number), queue, name, at
end

return away
