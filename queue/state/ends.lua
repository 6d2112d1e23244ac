-- ends: what is counted and released when a job ends for good: its batch has one more that has ended, its unique lock is free;
-- and how often it counts as interrupted when its handler died (settle), or its worker (reap), and when that makes it dead.
-- Jobs are moved in the same call, so nothing here may fail except burying: a key of a wrong kind counts nothing.
--
--   batch:<name>   hash: total (jobs it was given), done, dead, cancelled (those that have ended), failed (attempts), created, sealed
--                  (us: no more will come), then ("queue type": what to enqueue when all have ended), fired (us: that was
--                  done), ended (us), cancel (us: it was cancelled), mark_us, mark, last_us, last (how many had ended when: for
--                  its rate), types (how many jobs of which type it was given), next, sum (append). It expires, but not
--                  while it is paused or cancelled
--   unique:<key>   the id of the job that holds it
--
-- uses: bell body check counters dead_bytes heads lane_names stamp
local ends = {}

ends.KEPT_MS = 30 * 86400 * 1000  -- a batch is remembered so long after it last moved
local MARK_US = 1000000           -- rates are measured over about a second
local ID_MOST = 128

local FIELDS = {'total', 'done', 'dead', 'cancelled', 'sealed', 'then', 'fired', 'cancel', 'mark_us', 'mark'}

local function read_batch(name)
    local f = call_safe('HMGET', P .. 'batch:' .. name, unpack(FIELDS))
    if not f[1] then return nil end
    local b = {name = name, key = P .. 'batch:' .. name}
    for i, field in ipairs(FIELDS) do b[field] = f[i] end
    for _, field in ipairs({'total', 'done', 'dead', 'cancelled', 'mark_us', 'mark'}) do b[field] = tonumber(b[field] or 0) or 0 end
    return b
end

-- Makes the id of the job that follows a batch: that of a long name has a hash in place of its end, so that no two are one.
local function follower_id(name)
    if #name > ID_MOST - 5 then name = sub(name, 1, ID_MOST - 46) .. '.' .. sha1(name) end
    return name .. '.then'
end

-- Enqueues the job that follows, with what the batch counted as its args. without_queue is called where its queue is none.
local function enqueue_next(b, without_queue)
    local queue, name = b['then']:match('^(%S+) (%S+)$')
    if not (is_name(queue) and is_name(name)) then return false end
    local text = format('{"id":"%s","type":"%s","args":{"batch":"%s","total":%d,"done":%d,"dead":%d,"cancelled":%d}}',
                        follower_id(b.name), name, b.name, b.total, b.done, b.dead, b.cancelled)
    text = stamp.head(now) .. text
    local wrong = check.wrong_kind('queue:' .. queue, 'list')
    if wrong then return without_queue and without_queue(b, queue, name, wrong, text) end
    local length = call('RPUSH', P .. 'queue:' .. queue, text)
    call_safe('SADD', P .. 'queues', queue)
    if length == 1 then bell.arrived(queue) end
    call_safe('HSETNX', P .. 'types', name, '')
    counters.add(name, 'enqueued', 1)
    return true
end

-- Keeps a batch for a while. once: this begins the time for which it is remembered; else it does not shorten it, nor ends what has no end.
function ends.keep(name, keep_ms, once)
    if VIRTUAL then return end
    if once then
        call_safe('PEXPIRE', P .. 'batch:' .. name, us(keep_ms))
    else
        call_safe('PEXPIRE', P .. 'batch:' .. name, us(keep_ms), 'GT')
    end
end

local function end_batch(b, without_queue)
    call_safe('HSET', b.key, 'ended', us(now))
    ends.keep(b.name, ends.KEPT_MS, true)
    if b['then'] and not b.fired and not b.cancel and enqueue_next(b, without_queue) then call_safe('HSET', b.key, 'fired', us(now)) end
end

local LOOKS = 4

-- Takes some names of batches that are no longer remembered off the list, found by chance as another batch ends: they are never many more than a
-- quarter of it.
local function forget_names()
    for _, name in ipairs(call_safe('ZRANDMEMBER', P .. 'batches', LOOKS)) do
        if call('EXISTS', P .. 'batch:' .. name) == 0 then call('ZREM', P .. 'batches', name) end
    end
end

local function is_over(b) return b.sealed and b.done + b.dead + b.cancelled >= b.total end

-- Buries the job that follows, where its queue is none.
local function bury_next(b, queue, name, wrong, text)
    if check.wrong_kind('dead', 'zset') then return false end
    ends.bury_new('then:' .. b.name .. ':' .. us(now), queue, name, 'the end of its batch: ' .. wrong, text)
    return true
end

-- Ends a batch when it is sealed and all of its jobs have ended.
local function look_for_end(b)
    if not is_over(b) then return end
    if call_safe('HDEL', P .. 'halted', 'b/' .. b.name) == 1 then call_safe('HDEL', P .. 'reasons', 'batch ' .. b.name) end
    end_batch(b, bury_next)
    forget_names()
end

local function mark(b, ended)
    if now - b.mark_us < MARK_US and now >= b.mark_us then return end
    call_safe('HSET', b.key, 'last_us', us(b.mark_us), 'last', us(b.mark), 'mark_us', us(now), 'mark', us(ended))
    ends.keep(b.name, ends.KEPT_MS)
end

-- Counts n more jobs of a batch as done, dead or cancelled, or as failed once more.
function ends.batch(name, what, n)
    local b = read_batch(name)
    if not b then return end
    call_safe('HINCRBY', b.key, what, digits(n))
    if what == 'failed' then return end
    b[what] = b[what] + n
    mark(b, b.done + b.dead + b.cancelled)
    look_for_end(b)
end

-- Seals a batch, which exists: no more jobs come in.
function ends.seal(name)
    call_safe('HSETNX', P .. 'batch:' .. name, 'sealed', us(now))
    look_for_end(read_batch(name))
end

-- Seals a batch as a producer does, who ends no pause: a paused batch ends when it is resumed. The queue of the job that follows was looked at.
function ends.seal_new(name)
    call_safe('HSETNX', P .. 'batch:' .. name, 'sealed', us(now))
    local b = read_batch(name)
    if is_over(b) and call_safe('HEXISTS', P .. 'halted', 'b/' .. name) == 0 then end_batch(b) end
end

-- Looks whether a batch that is paused no more has ended.
function ends.look(name)
    local b = read_batch(name)
    if b then look_for_end(b) end
end

-- Frees a lock. at: where the body begins in the entry.
function ends.unlock(key, entry, at)
    local holder = call_safe('GET', P .. 'unique:' .. key)
    if type(holder) == 'string' and holder == body.id(entry, at) then call_safe('DEL', P .. 'unique:' .. key) end
end

function ends.lock_of(attrs) return heads.attr(attrs, 'u') or heads.attr(attrs, 'w') end

-- Frees the lock of a job that starts, if it holds it that long.
function ends.started(entry)
    local attrs, at = heads.attrs_of(entry)
    ends.unlock(heads.attr(attrs, 'w'), entry, at)
end

-- Counts jobs that have ended as done, dead or cancelled.
function ends.jobs(entries, what)
    local batches, known, batch, key = {}, nil, nil, nil
    for _, entry in ipairs(entries) do
        local attrs, at = heads.attrs_of(entry)
        if attrs ~= known then known, batch, key = attrs, heads.attr(attrs, 'b'), ends.lock_of(attrs) end
        if batch then batches[batch] = (batches[batch] or 0) + 1 end
        if key then ends.unlock(key, entry, at) end
    end
    for name, n in pairs(batches) do ends.batch(name, what, n) end
end

-- Lets a dead job run again: its batch has not ended, and its lock is taken unless another job holds it now.
function ends.revive(entry)
    local _, _, _, text, attrs = heads.read(entry)
    local batch, key = heads.attr(attrs, 'b'), ends.lock_of(attrs)
    if batch and read_batch(batch) then
        call_safe('HINCRBY', P .. 'batch:' .. batch, 'dead', -1)
        call_safe('HDEL', P .. 'batch:' .. batch, 'ended')
    end
    if key then call_safe('SET', P .. 'unique:' .. key, body.id(text) or '', 'NX') end
end

-- Puts records into dead, with their scores as ZADD takes them. This is the only way into the dead jobs: who calls it lets types, batches and locks
-- know of it.
function ends.bury_records(records)
    push('ZADD', P .. 'dead', records)
    dead_bytes.added(records)
end

-- Buries jobs, {tag =, lane =, type =, reason =, entry =} each, with the reason in one line. lane: "<queue>//" or "//", and no type, where that is
-- not known.
function ends.bury_all(jobs)
    if #jobs == 0 then return end
    local records, entries, at, reason, line = {}, {}, us(now), nil, nil
    for i, job in ipairs(jobs) do
        if job.reason ~= reason then reason, line = job.reason, ' ' .. job.reason:gsub('%c', ' ') .. '\n' end
        entries[i] = heads.cleared(job.entry)
        records[2 * i - 1], records[2 * i] = at, job.tag .. ' ' .. lane_names.usual(job.lane) .. line .. entries[i]
    end
    ends.bury_records(records)
    counters.add_all(jobs, 'dead')
    ends.jobs(entries, 'dead')
end

function ends.bury(tag, lane, reason, entry)
    local _, name = lane_names.parts(lane)
    ends.bury_all({{tag = tag, lane = lane, type = name, reason = reason, entry = entry}})
end

-- Buries a job that could not come into its queue. Its type counts it as if it had come and been taken from there.
function ends.bury_new(tag, queue, name, reason, entry)
    counters.add(name, 'enqueued', 1)
    counters.add(name, 'pulled', 1)
    ends.bury(tag, queue .. '/' .. name .. '/', reason, entry)
end

-- Returns how often a job counts as interrupted after the death of its worker. Any job that ran beside it may have killed the worker: the first
-- time it is only suspected, and from then on only deaths count at which it was alone.
local function count_death(interrupted, job) return job.alone and interrupted + 1 or max(interrupted, 1) end

-- True when the death of its worker is the last one of a job.
function ends.is_last(job, most)
    local _, interrupted = heads.read(job.entry)
    return count_death(interrupted, job) >= most
end

local function is_over(job, interrupted, most, who, deaths, reason)
    if interrupted < most then return false end
    job.reason = format('its %s died %d times', who, deaths) .. (reason ~= '' and ': ' .. reason or '')
    return true
end

-- Counts in a job's entry that its handler died while it ran; job: {lane =, type =, entry =, ...}. true: the job goes back to job.lane; false: that
-- was once too often, and the job is to be buried, for job.reason. worker: its id. The worker has seen to it that the job was alone in its child, but for the first
-- time. reason: the last words, or ''.
function ends.handler_died(job, most, reason, worker)
    local attempts, interrupted, throttled, text, attrs = heads.read(job.entry)
    if reason ~= '' then attrs = heads.failed(attrs, reason, worker) end
    job.entry = heads.write(attempts, interrupted + 1, throttled, text, attrs)
    return not is_over(job, interrupted + 1, most, 'handler', interrupted + 1, reason)
end

-- Counts that the worker died in which the handler of a job ran, with so many jobs: it is a suspect. job.alone: it ran alone.
function ends.worker_died(job, most, count)
    local attempts, interrupted, throttled, text, attrs = heads.read(job.entry)
    local deaths = (tonumber(heads.attr(attrs, 'k')) or interrupted) + 1
    interrupted = count_death(interrupted, job)
    attrs = heads.suspected(attrs, count, deaths > interrupted and deaths or nil)
    job.entry = heads.write(attempts, interrupted, throttled, text, attrs)
    return not is_over(job, interrupted, most, 'worker', deaths, '')
end

function ends.bury_unread(worker, jobs)
    for i, job in ipairs(jobs) do
        ends.bury(worker .. ':unread' .. i, '//', 'its lease cannot be read: ' .. job.token, job.entry)
    end
end

return ends
