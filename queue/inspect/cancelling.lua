-- cancelling: jobs are cancelled where they are: in a lease, in `later`, or where they wait.
--
-- uses: cancelled counters lane lane_names leases
local cancelling = {}

-- A job has left its lane. Returns the queue for whose workers the bell is to ring, where another job may be the first now; nil: none is.
function cancelling.left_lane(name, was_first)
    local queue, kind, key = lane_names.parts(name)
    local is_empty = call('EXISTS', P .. 'lane:' .. name) == 0
    if not was_first and not is_empty then return nil end
    lane.wake(queue, kind, key)
    if is_empty then lane.leave_ring(queue, kind, key) end
    return queue
end

-- What a job is counted as that ends where it waits, by the kind of that list.
local COUNTED = {queue = {'dropped'}, lane = {'served', 'back', 'unstarted'}, aside = {}}

-- Ends entries that have left their lists; counts: {"<kind of list> <type>" = how many}.
function cancelling.end_waiting(entries, counts)
    if #entries == 0 then return end
    for what, n in pairs(counts) do
        local kind, name = match(what, '^(%a+) (.*)$')
        for _, counter in ipairs(is_name(name) and COUNTED[kind] or {}) do counters.add(name, counter, n) end
        if is_name(name) then counters.add(name, 'cancelled', n) end
        if is_name(name) and kind == 'aside' then counters.add(name, 'set_aside', -n) end
    end
    cancelled.finish(entries)
end

-- Tells the worker of a job that runs; if the job comes back all the same, it ends.
function cancelling.tell(worker, token, entry)
    call('HSET', P .. 'active:' .. worker, token, cancelled.mark(entry))
    leases.tell(worker, {token})
end

-- Returns the type of a job in `later`, by its record's header; nil: it cannot be read.
function cancelling.type_of(header) return match(header, '^q %S+ %S+ (%S+)$') or match(header, '^l %S+ [^/]+/([^/]+)/') end

-- Takes a job out of `later`, by its header and entry. False: it is not there, or cannot be read.
function cancelling.take(header, entry)
    local name = cancelling.type_of(header)
    if not name or call('ZREM', P .. 'later', header .. '\n' .. entry) == 0 then return false end
    counters.add(name, 'scheduled', -1)
    counters.add(name, 'cancelled', 1)
    cancelled.finish({entry})
    return true
end

return cancelling
