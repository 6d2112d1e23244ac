-- dead: one page of the dead jobs, oldest first, and of those on it that are asked for: how many there are, what they are, or their
-- way back to the tail of their queue, or their end.
--
-- Who goes through all of them begins with '' and gives back the place that each page names, until its score is ''. A page begins
-- behind the record where the last one ended, whether that is still there or not: none is passed over and none comes twice while
-- others die, are trimmed or retried. Jobs that die after the first page are not met.
--
-- A retried job keeps its batch, and takes its lock again unless another job has it. Its counts begin anew, and that it was
-- cancelled before it died counts no more.
--
-- KEYS[1] prefix
-- ARGV: now, verb, most (records to look at, 1 to 200), till, score, record (the place),
--       type, queue, batch, text (in the reason), older, newer (us, died at least and at most so long ago); '' for each: any
--       argument   of list: how many bytes of each body; of retry: the queue for all, '' for each its own; else ''
--       seed       random: see sign
--       id ...     as list names them; none: any
-- reply: [ now, till, score, record, records looked at, found ]; found:
--        count: [ [ type, reason, number, number of those without a queue ], ... ]
--        list: [ [ died us, queue, type, key, reason, attempts, interrupted, throttled, batch, key of its lock, last failure us or '',
--                  that failure, id, bytes of the body, as many of the body as asked for ], ... ]
--        retry, remove: [ how many, how many were left as they have no queue, id, ... ]; ids: only if some were given
-- uses: arrival bell body check dead_bytes dead_records ends lease sign

local PAGE_MOST = 200
local AT = 64 -- "@"

-- Where a walk begins, and the score at which it will end.
local function begin_walk(older, newer)
    local rank = newer and call('ZCOUNT', P .. 'dead', '-inf', '(' .. us(now - newer)) or 0
    if older then return rank, us(now - older) end
    local last = call('ZRANGE', P .. 'dead', '-1', '-1', 'WITHSCORES')[2]
    return rank, last and tonumber(last) > now and last or us(now)
end

local function is_wanted(job, asked)
    return (asked.type == '' or job.type == asked.type) and (asked.queue == '' or job.queue == asked.queue)
        and (asked.batch == '' or lease.attr(job.attrs, 'b') == asked.batch)
        and (asked.text == '' or find(job.reason, asked.text, 1, true) ~= nil)
        and (not asked.ids or asked.ids[job.id] ~= nil)
end

-- Those of a page that are wanted.
local function choose(records, scores, asked)
    local jobs = {}
    for i, record in ipairs(records) do
        local job = dead_records.read(record)
        job.record, job.score = record, scores[i]
        job.attempts, job.interrupted, job.throttled, job.body, job.attrs = lease.entry_read(job.entry)
        if asked.ids or asked.verb == 'list' then job.id = dead_records.handle(record, job.body) end
        if is_wanted(job, asked) then jobs[#jobs + 1] = job end
    end
    return jobs
end

local verbs = {}

function verbs.count(jobs)
    local rows, by_name = {}, {}
    for _, job in ipairs(jobs) do
        local name = job.type .. '\n' .. job.reason
        local row = by_name[name]
        if not row then
            row = {job.type, job.reason, 0, 0}
            rows[#rows + 1], by_name[name] = row, row
        end
        row[3] = row[3] + 1
        if not is_name(job.queue) then row[4] = row[4] + 1 end
    end
    return rows
end

function verbs.list(jobs, asked)
    local rows, most = {}, tonumber(asked.argument)
    for i, job in ipairs(jobs) do
        local failed_us, failure = lease.failure(job.attrs)
        rows[i] = {job.score, job.queue, job.type, job.key, job.reason, us(job.attempts), us(job.interrupted), us(job.throttled),
                   lease.attr(job.attrs, 'b') or '', lease.attr(job.attrs, 'u') or lease.attr(job.attrs, 'w') or '',
                   failed_us and us(failed_us) or '', failure or '', job.id, us(#job.body), sub(job.body, 1, most)}
    end
    return rows
end

local function take_out(jobs, what, left, asked)
    local records, scores, names, reply = {}, {}, {}, {#jobs, left}
    for i, job in ipairs(jobs) do
        records[i], scores[i], names[i] = job.record, job.score, job.type
        if asked.ids then reply[#reply + 1] = job.id end
    end
    push('ZREM', P .. 'dead', records)
    dead_bytes.removed(scores, records)
    dead_records.count(names, what)
    return reply
end

function verbs.remove(jobs, asked) return take_out(jobs, 'removed', 0, asked) end

-- The entry that begins anew. A body that looks like a head keeps one before it, or it would be signed as one.
local function fresh(job)
    local attrs = job.attrs:gsub(',e[^,]*', '')
    local bare = attrs == '' and byte(job.body) ~= AT
    return bare and job.body or lease.entry_write(0, 0, 0, job.body, attrs)
end

local function signed(entries, seed)
    for i, entry in ipairs(entries) do entries[i] = sign.write(entry, seed) end
    return entries
end

-- Into which queue each job goes: sets job.into, returns those that have one, and the queues.
local function choose_queues(jobs, asked)
    local able, queues, known = {}, {}, {}
    for _, job in ipairs(jobs) do
        job.into = asked.argument ~= '' and asked.argument or job.queue
        if is_name(job.into) then
            able[#able + 1] = job
            if not known[job.into] then queues[#queues + 1], known[job.into] = job.into, {} end
            local entries = known[job.into]
            entries[#entries + 1] = fresh(job)
        end
    end
    return able, queues, known
end

function verbs.retry(jobs, asked)
    local able, queues, entries = choose_queues(jobs, asked)
    local wrong, names, ids = arrival.wrong_registries() or sign.wrong(), {}, {}
    for _, queue in ipairs(queues) do wrong = wrong or check.wrong_kind('queue:' .. queue, 'list') end
    if wrong then return nil, wrong end
    local were_empty = {}
    for _, queue in ipairs(queues) do
        push('RPUSH', P .. 'queue:' .. queue, signed(entries[queue], asked.seed))
        call('SADD', P .. 'queues', queue)
        if call('LLEN', P .. 'queue:' .. queue) == #entries[queue] then were_empty[#were_empty + 1] = queue end
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
    return take_out(able, 'revived', #jobs - #able, asked)
end

local NAMES = {'verb', 'most', 'till', 'score', 'record', 'type', 'queue', 'batch', 'text', 'older', 'newer', 'argument', 'seed'}

local function is_time(text) return text == '' or is_whole(tonumber(text)) end

-- What was asked for; nil and what is wrong with it.
local function read_arguments(ARGV)
    local asked = {}
    if #ARGV < 1 + #NAMES then return nil, 'wants ' .. #NAMES + 1 .. ' arguments' end
    for i, name in ipairs(NAMES) do asked[name] = ARGV[i + 1] end
    for i = 2 + #NAMES, #ARGV do
        asked.ids = asked.ids or {}
        asked.ids[ARGV[i]] = true
    end
    asked.most = tonumber(asked.most)
    if not verbs[asked.verb] then return nil, 'unknown verb ' .. asked.verb end
    if not is_whole(asked.most, 1) or asked.most > PAGE_MOST then return nil, 'most must be 1 to ' .. PAGE_MOST end
    if asked.score ~= '' and not (tonumber(asked.score) and tonumber(asked.till)) then return nil, 'its place is none' end
    if not is_time(asked.older) or not is_time(asked.newer) then return nil, 'older and newer are whole numbers' end
    if asked.verb == 'list' and not is_whole(tonumber(asked.argument)) then return nil, 'list wants a number of bytes' end
    if asked.verb == 'retry' and asked.argument ~= '' and not is_name(asked.argument) then return nil, 'its queue is not a valid name' end
    if not is_name(asked.seed) then return nil, 'its seed is not a valid name' end
    return asked
end

local function dead(ARGV)
    local asked, wrong = read_arguments(ARGV)
    if not asked then return refuse('dead: %s', wrong) end
    wrong = check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end

    local rank, till
    if asked.score == '' then
        rank, till = begin_walk(tonumber(asked.older), tonumber(asked.newer))
    else
        rank, till = dead_records.rank_behind(asked.score, asked.record), asked.till
    end
    local records, scores, ended = dead_records.page(rank, asked.most, tonumber(till))
    local found, wrong_key = verbs[asked.verb](choose(records, scores, asked), asked)
    if not found then return check.refuse_key(wrong_key) end
    local last = not ended and #records
    return {us(now), till, last and scores[last] or '', last and records[last] or '', #records, found}
end

return dead
