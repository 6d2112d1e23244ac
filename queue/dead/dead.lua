-- dead: one page of the dead jobs, a list from the newest down, all else from the oldest up, and of those on it that are asked for: how many there are, what they are, or their
-- way back to the tail of their queue, or their end.
--
-- A page begins behind the record where the last one ended, whether that is still there or not: none is passed over and none comes
-- twice while others die, are trimmed or retried. Jobs that die after the first page are not met.
--
-- ARGV: now, verb, most (records to look at, 1 to 200),
--       type, queue, batch, text (in the reason, or in what it is folded to), older, newer (us, died at least and at most so long ago); '' for each: any
--       argument   of list: how many bytes of each body; of retry: the queue for all, '' for each its own; else ''
--       seed       random: see sign
--       count, id ...           as list names them; 0: any
--       till, score, record     the place, as the last page says; none for the first one
-- role: operator
-- reply: JSON: {"next": the place, if there is more, its record beside the JSON; "looked_at": records of this page; "ids": of the jobs, if some were asked for}, and
--        count:         "jobs": how many, "without_queue", "cancelled": those of them, "batch", "reasons": [{"type", "reason": folded, "jobs", "first_at", "last_at": us, unless nobody knows, "id": of the first}, ...]
--        list:          "found": [{"since": us, unless nobody knows; "id", "type", "queue", "key", "reason", "attempts", "interrupted",
--                       "throttled", "enqueued_at": us, "due_at": us, where it was scheduled or retried, "batch", "unique": its lock, "failed_at": us of its last failure, "failure",
--                       "bytes": of the body}, ...]; what is not known is absent or ''; beside the JSON, in that order: as much of the bodies as asked for
--        retry, remove: "jobs": how many, "without_queue": how many more were left as they have none, "cancelled": as their batch was
--                       cancelled and has not ended; "batch": one of those batches; "elsewhere": [{"to": partition, "queue"}, ...] of those of jobs
--                       that are still to go to the partition of their type, their records beside the JSON
-- uses: cancelled check dead_moves dead_records heads stamp

local PAGE_MOST = 200

-- Where a walk begins, and the score at which it will end.
local function begin_walk(older, newer, newest)
    if newest then
        return older and call('ZCOUNT', P .. 'dead', '(' .. us(now - older), '+inf') or 0, newer and us(now - newer) or '-inf'
    end
    local rank = newer and call('ZCOUNT', P .. 'dead', '-inf', '(' .. us(now - newer)) or 0
    if older then return rank, us(now - older) end
    local last = call('ZRANGE', P .. 'dead', '-1', '-1', 'WITHSCORES')[2]
    return rank, last and tonumber(last) > now and last or us(now)
end

local function is_wanted(job, asked)
    return (asked.type == '' or job.type == asked.type) and (asked.queue == '' or job.queue == asked.queue)
        and (asked.batch == '' or heads.attr(job.attrs, 'b') == asked.batch)
        and (asked.text == '' or dead_records.has_reason(job.reason, asked.text))
        and (not asked.ids or asked.ids[job.id] ~= nil)
end

-- Chooses the records of a page that are wanted.
local function choose(records, scores, asked)
    local jobs = {}
    for i, record in ipairs(records) do
        local job = dead_records.read(record)
        job.record, job.score = record, scores[i]
        job.attempts, job.interrupted, job.throttled, job.body, job.attrs = heads.read(job.entry)
        if asked.ids or asked.verb == 'list' then job.id = dead_records.handle(record, job.body) end
        if is_wanted(job, asked) then jobs[#jobs + 1] = job end
    end
    return jobs
end

local verbs = {}

-- Returns the jobs that may run again, how many may not as their batch was cancelled, and one of those batches.
local function apart(jobs)
    local able, batch = {}, nil
    for _, job in ipairs(jobs) do
        local over = cancelled.batch_ever(job.attrs)
        if over then batch = over else able[#able + 1] = job end
    end
    return able, #jobs - #able, batch
end

local function ids_of(jobs, asked)
    local ids = {}
    for i, job in ipairs(asked.ids and jobs or {}) do ids[i] = job.id end
    return ids
end

function verbs.count(jobs, asked)
    local found = {jobs = #jobs, without_queue = 0, reasons = {}, ids = ids_of(jobs, asked)}
    local by_name, able = {}, nil
    able, found.cancelled, found.batch = apart(jobs)
    for _, job in ipairs(jobs) do
        local reason = dead_records.fold(job.reason)
        local name = job.type .. '\n' .. reason
        local row = by_name[name]
        if not row then
            row = {type = job.type, reason = reason, jobs = 0, id = dead_records.handle(job.record, job.body)}
            found.reasons[#found.reasons + 1], by_name[name] = row, row
        end
        local died = dead_records.time(job.score)
        row.jobs, row.first_at, row.last_at = row.jobs + 1, row.first_at or died, died
    end
    for _, job in ipairs(able) do
        if not is_name(job.queue) then found.without_queue = found.without_queue + 1 end
    end
    return found
end

function verbs.list(jobs, asked)
    local found, bodies, most = {}, {}, tonumber(asked.argument)
    for i, job in ipairs(jobs) do
        local failed_us, failure = heads.failure(job.attrs)
        local enqueued_us, due_us, was_due = stamp.time(job.attrs), stamp.since(job.attrs)
        found[i] = {since = dead_records.time(job.score), id = job.id, type = job.type, queue = job.queue, key = job.key,
                    reason = job.reason, attempts = us(job.attempts), interrupted = us(job.interrupted), throttled = us(job.throttled),
                    enqueued_at = enqueued_us and us(enqueued_us), due_at = was_due and us(due_us) or nil, batch = heads.attr(job.attrs, 'b'), unique = heads.attr(job.attrs, 'u') or heads.attr(job.attrs, 'w'),
                    failed_at = failed_us and us(failed_us) or nil, failure = failure, bytes = #job.body}
        bodies[i] = sub(job.body, 1, most)
    end
    return {found = found}, bodies
end

-- Says what became of the jobs on this page.
local function moved(jobs, left, asked) return {jobs = #jobs, without_queue = left, cancelled = 0, ids = ids_of(jobs, asked)} end

function verbs.remove(jobs, asked)
    dead_moves.remove(jobs)
    return moved(jobs, 0, asked)
end

function verbs.retry(jobs, asked)
    local rest, over, batch = apart(jobs)
    local able, queues, elsewhere, records = dead_moves.into_queues(rest, asked.argument)
    local wrong = dead_moves.wrong(queues)
    if wrong then return nil, wrong end
    dead_moves.retry(able, queues, asked.seed)
    local found = moved(able, #rest - #able - #elsewhere, asked)
    found.jobs, found.cancelled, found.batch = #able + #elsewhere, over, batch
    found.elsewhere = #elsewhere > 0 and elsewhere or nil
    return found, records
end

local NAMES = {'verb', 'most', 'type', 'queue', 'batch', 'text', 'older', 'newer', 'argument', 'seed', 'count'}

local function is_time(text) return text == '' or is_whole(tonumber(text)) end

-- The ids and the place behind the arguments that have a name; what is wrong with them.
local function read_rest(ARGV, asked)
    local at = 1 + #NAMES
    if not is_whole(asked.count) or #ARGV ~= at + asked.count and #ARGV ~= at + asked.count + 3 then return 'wants count ids, and a place or none' end
    asked.ids = asked.count > 0 and {} or nil
    for i = at + 1, at + asked.count do asked.ids[ARGV[i]] = true end
    asked.till, asked.score, asked.record = unpack(ARGV, at + asked.count + 1)
    if asked.till and not (tonumber(asked.till) and tonumber(asked.score)) then return 'its place is none' end
end

-- Reads what was asked for; nil and what is wrong with it.
local function read_arguments(ARGV)
    local asked = {}
    if #ARGV < 1 + #NAMES then return nil, 'wants ' .. #NAMES + 1 .. ' arguments' end
    for i, name in ipairs(NAMES) do asked[name] = ARGV[i + 1] end
    asked.most, asked.count = tonumber(asked.most), tonumber(asked.count)
    if not verbs[asked.verb] then return nil, 'unknown verb ' .. asked.verb end
    if not is_whole(asked.most, 1) or asked.most > PAGE_MOST then return nil, 'most must be 1 to ' .. PAGE_MOST end
    if not is_time(asked.older) or not is_time(asked.newer) then return nil, 'older and newer are whole numbers' end
    if asked.verb == 'list' and not is_whole(tonumber(asked.argument)) then return nil, 'list wants a number of bytes' end
    if asked.verb == 'retry' and asked.argument ~= '' and not is_name(asked.argument) then return nil, 'its queue is not a valid name' end
    if not is_name(asked.seed) then return nil, 'its seed is not a valid name' end
    local wrong = read_rest(ARGV, asked)
    return not wrong and asked or nil, wrong
end

local function dead(ARGV)
    local asked, wrong = read_arguments(ARGV)
    if not asked then return refuse('dead: %s', wrong) end
    wrong = check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end

    local rank, till
    local newest = asked.verb == 'list' and 'REV' or nil
    if asked.till then
        local before
        rank, before = dead_records.rank_behind(asked.score, asked.record)
        rank, till = newest and call('ZCARD', P .. 'dead') - before or rank, asked.till
    else
        rank, till = begin_walk(tonumber(asked.older), tonumber(asked.newer), newest)
    end
    local records, scores, ended = dead_records.page(rank, asked.most, tonumber(till), newest)
    local found, raw = verbs[asked.verb](choose(records, scores, asked), asked)
    if not found then return check.refuse_key(raw) end
    found.looked_at = #records
    if not ended then
        raw = raw or {}
        found.next = {till, scores[#records], #raw}
        raw[#raw + 1] = records[#records]
    end
    return answer(found, raw)
end

return dead
