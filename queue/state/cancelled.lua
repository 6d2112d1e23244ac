-- cancelled: jobs end as cancelled, many at once: their batches count them, their unique locks are free, and their marks in the hash
-- `cancelled` are not needed any more. Jobs are moved in the same call, so nothing here may fail.
--
-- A job that waits is marked in that hash, by its id. One that runs is marked in its lease, so the mark ends with the lease: done, or
-- as cancelled, when it would come back.
--
-- uses: body counters ends heads
local cancelled = {}

-- Ends cancelled jobs; their types are counted by the caller.
function cancelled.finish(entries)
    local ids = {}
    ends.jobs(entries, 'cancelled')
    for _, entry in ipairs(entries) do
        local _, at = heads.attrs_of(entry)
        ids[#ids + 1] = body.id(entry, at)
    end
    for i = 1, #ids, 4000 do call_safe('HDEL', P .. 'cancelled', unpack(ids, i, min(i + 3999, #ids))) end
end

-- Makes the mark of a job that waits.
function cancelled.waiting(since, queue, kind, batch) return 'waiting ' .. since .. ' ' .. queue .. '/' .. kind .. ' ' .. batch end

local ASKED_US = 86400 * 1000000 -- whoever marked it has died by then, and did not say whether it waits

-- True when a mark may be forgotten: nothing stands any more where its job could.
function cancelled.is_stale(mark)
    local queue, kind, batch = match(mark, '^waiting %d+ ([^/ ]+)/(%S*) (%S*)$')
    if queue then
        return call('EXISTS', P .. 'queue:' .. queue, P .. 'ring:' .. queue .. '/' .. kind, P .. 'sleep:' .. queue,
                    P .. 'ring:' .. queue .. '!/' .. kind, P .. 'sleep:' .. queue .. '!', P .. 'aside:' .. batch) == 0
    end
    local since = tonumber(match(mark, '^%a+ (%d+)'))
    return not since or now - since > ASKED_US
end

-- Returns the batch of a job with these attributes, if it was cancelled and has not ended: then a claim ends the job. nil: it was not.
function cancelled.batch_of(attrs)
    local batch = heads.attr(attrs, 'b')
    local state = batch and call_safe('HGET', P .. 'halted', 'b/' .. batch)
    return type(state) == 'string' and find(state, '^cancelled') and batch or nil
end

-- Says whether the batch was ever cancelled, also where it has ended: what was to be its job is not to run again.
function cancelled.batch_ever(attrs)
    local batch = heads.attr(attrs, 'b')
    return batch and (cancelled.batch_of(attrs) or type(call_safe('HGET', P .. 'batch:' .. batch, 'cancel')) == 'string' and batch) or nil
end

-- Says that a claim will end this waiting job: the name of its batch where that was cancelled, '' where the job was marked; nil: it was not
-- cancelled.
function cancelled.by(entry)
    local attrs, at = heads.attrs_of(entry)
    local batch = cancelled.batch_of(attrs)
    if batch then return batch end
    local id = body.id(entry, at)
    return is_name(id) and call_safe('HEXISTS', P .. 'cancelled', id) == 1 and '' or nil
end

-- Marks the entry of a lease as that of a job that was cancelled, now or before.
function cancelled.mark(entry)
    local attempts, interrupted, throttled, body, attrs = heads.read(entry)
    if heads.attr(attrs, 'c') then return entry end
    return heads.write(attempts, interrupted, throttled, body, attrs .. ',c' .. us(now))
end

function cancelled.is_marked(entry) return heads.attr(heads.attrs_of(entry), 'c') ~= nil end

-- Ends jobs that ran as cancelled.
function cancelled.end_leases(jobs)
    local entries = {}
    for i, job in ipairs(jobs) do entries[i] = job.entry end
    cancelled.finish(entries)
    counters.add_all(jobs, 'back')
    counters.add_all(jobs, 'cancelled')
end

-- Ends the cancelled jobs among those that come back from their leases, and returns the others.
function cancelled.end_among(jobs)
    local ended, others = {}, {}
    for _, job in ipairs(jobs) do
        local list = cancelled.is_marked(job.entry) and ended or others
        list[#list + 1] = job
    end
    cancelled.end_leases(ended)
    return others
end

return cancelled
