-- dead_moves: dead jobs leave `dead`: for the tail of their queue, or for good.
--
-- A job is {record =, score =, type =, queue =, entry =, body =, attrs =}.
--
-- A retried job waits since now. It keeps its batch, and takes its lock again unless another job has it. Its counts begin anew, and that it was
-- cancelled before it died counts no more. A job that died where its type does not live goes to its home, in steps that may be repeated: dead_arrive
-- there, dead_leave here.
--
-- uses: arrival bell body check dead_bytes dead_records ends heads large partition sign stamp
local dead_moves = {}

local AT = 64 -- "@"

local function take_out(jobs, what)
    local records, scores, names = {}, {}, {}
    for i, job in ipairs(jobs) do records[i], scores[i], names[i] = job.record, job.score, job.type end
    push('ZREM', P .. 'dead', records)
    dead_bytes.removed(scores, records)
    dead_records.count(names, what)
end

function dead_moves.remove(jobs) take_out(jobs, 'removed') end

function dead_moves.leave(jobs) take_out(jobs, 'revived') end

-- The entry that begins anew. A body that looks like a head keeps one before it, or it would be signed as one.
local function fresh(job)
    local attrs = stamp.due((job.attrs:gsub(',[ear]%d[^,]*', '')), now)
    local bare = attrs == '' and byte(job.body) ~= AT
    return bare and job.body or heads.write(0, 0, 0, job.body, attrs)
end

local function signed(entries, seed)
    for i, entry in ipairs(entries) do entries[i] = sign.write(entry, seed) end
    return entries
end

-- Sorts jobs by where they go. Returns the jobs that go to a queue here, into ('': each job has its own), and the queues: {<queue> = entries}; then
-- {to = partition, queue =} for each job whose type lives on another partition, and the records of these jobs.
function dead_moves.into_queues(jobs, into)
    local able, queues, elsewhere, records = {}, {}, {}, {}
    for _, job in ipairs(jobs) do
        local queue = into ~= '' and into or job.queue
        local to = is_name(queue) and is_name(job.type) and partition.elsewhere(job.type)
        if to then
            elsewhere[#elsewhere + 1], records[#records + 1] = {to = to, queue = queue}, job.record
        elseif is_name(queue) then
            able[#able + 1] = job
            queues[queue] = queues[queue] or {}
            queues[queue][#queues[queue] + 1] = fresh(job)
        end
    end
    return able, queues, elsewhere, records
end

-- What is wrong with the keys that put writes; nil: nothing.
function dead_moves.wrong(queues)
    local wrong = arrival.wrong_registries() or sign.wrong()
    for queue in pairs(queues) do wrong = wrong or check.wrong_kind('queue:' .. queue, 'list') end
    return wrong
end

-- Of what into_queues has returned.
function dead_moves.put(able, queues, seed)
    local were_empty, names, ids = {}, {}, {}
    for queue, entries in pairs(queues) do
        push('RPUSH', P .. 'queue:' .. queue, signed(entries, seed))
        call('SADD', P .. 'queues', queue)
        for _, entry in ipairs(entries) do large.note(queue, entry) end
        if call('LLEN', P .. 'queue:' .. queue) == #entries then were_empty[#were_empty + 1] = queue end
    end
    bell.arrived_all(were_empty)
    for i, job in ipairs(able) do
        names[i] = job.type
        if is_name(job.type) then call('HSETNX', P .. 'types', job.type, '') end
        ends.revive(job.entry)
        ids[#ids + 1] = body.id(job.body)
    end
    if #ids > 0 then call_safe('HDEL', P .. 'cancelled', unpack(ids)) end
    dead_records.count(names, 'enqueued')
end

function dead_moves.retry(able, queues, seed)
    dead_moves.put(able, queues, seed)
    dead_moves.leave(able)
end

return dead_moves
