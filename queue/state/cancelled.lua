-- cancelled: jobs end as cancelled, many at once: their batches count them, their unique locks are free, and their marks in the hash
-- `cancelled` are not needed any more. Jobs are moved in the same call, so nothing here may fail.
--
-- A job that waits is marked in that hash, by its id. One that runs is marked in its lease, so the mark ends with the lease: done, or
-- as cancelled, when it would come back.
--
-- uses: body ends lease
local cancelled = {}

-- Adds what the end of an entry changes to batches, {name = n}, and ids.
local function end_one(entry, batches, ids)
    local attrs, at = lease.head_read(entry)
    local batch = lease.attr(attrs, 'b')
    if batch then batches[batch] = (batches[batch] or 0) + 1 end
    if attrs ~= '' then ends.unlock(entry) end
    ids[#ids + 1] = body.id(entry, at)
end

-- The counters of their types are the caller's.
function cancelled.finish(entries)
    local batches, ids = {}, {}
    for _, entry in ipairs(entries) do end_one(entry, batches, ids) end
    for name, n in pairs(batches) do ends.batch(name, 'cancelled', n) end
    for i = 1, #ids, 4000 do call_safe('HDEL', P .. 'cancelled', unpack(ids, i, min(i + 3999, #ids))) end
end

-- The mark of a job that waits, in the hash.
function cancelled.waiting(since, queue, kind, batch) return 'waiting ' .. since .. ' ' .. queue .. '/' .. kind .. ' ' .. batch end

local ASKED_US = 86400 * 1000000 -- whoever marked it has died by then, and did not say whether it waits

-- May a mark be forgotten? Not as long as anything stands where its job could.
function cancelled.is_stale(mark)
    local queue, kind, batch = match(mark, '^waiting %d+ ([^/ ]+)/(%S*) (%S*)$')
    if queue then
        return call('EXISTS', P .. 'queue:' .. queue, P .. 'ring:' .. queue .. '/' .. kind, P .. 'sleep:' .. queue,
                    P .. 'ring:' .. queue .. '!/' .. kind, P .. 'sleep:' .. queue .. '!', P .. 'aside:' .. batch) == 0
    end
    local since = tonumber(match(mark, '^%a+ (%d+)'))
    return not since or now - since > ASKED_US
end

-- The entry of a lease as that of a job that was cancelled, now or before.
function cancelled.mark(entry)
    local attempts, interrupted, throttled, body, attrs = lease.entry_read(entry)
    if lease.attr(attrs, 'c') then return entry end
    return lease.entry_write(attempts, interrupted, throttled, body, attrs .. ',c' .. us(now))
end

function cancelled.is_marked(entry)
    local head = match(entry, '^@%d+,%d+,%d+([^;]*);')
    return head and lease.attr(head, 'c') ~= nil
end

-- A job that ran has ended so.
function cancelled.end_lease(job)
    cancelled.finish({job.entry})
    lease.count(job.type, 'back', 1)
    lease.count(job.type, 'cancelled', 1)
end

-- Jobs that come back from their leases: those that were cancelled have ended, the others are returned.
function cancelled.end_among(jobs)
    local others = {}
    for _, job in ipairs(jobs) do
        if cancelled.is_marked(job.entry) then cancelled.end_lease(job) else others[#others + 1] = job end
    end
    return others
end

return cancelled
