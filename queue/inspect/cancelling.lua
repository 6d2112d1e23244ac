-- cancelling: one job is cancelled where it is: in a lease, in `later`, or marked where it waits.
--
-- uses: cancelled lane lease leases
local cancelling = {}

-- A job of a lane was marked: if it is the first, the next claim meets it. Returns the queue, for whose workers the bell is to ring.
function cancelling.lane_is_due(name)
    local queue, kind, key = lease.lane_parts(name)
    lane.wake(queue, kind, key)
    return queue
end

-- It runs: its worker is told, and if it comes back all the same, it ends.
function cancelling.tell(worker, token, entry)
    call('HSET', P .. 'active:' .. worker, token, cancelled.mark(entry))
    leases.tell(worker, {token})
end

-- The type of a job in `later`, of its record's header; nil: it cannot be read.
function cancelling.type_of(header) return match(header, '^q %S+ %S+ (%S+)$') or match(header, '^l %S+ [^/]+/([^/]+)/') end

-- It stands in `later`, as a record of these: gone at once. false: it does not, or cannot be read.
function cancelling.take(header, entry)
    local name = cancelling.type_of(header)
    if not name or call('ZREM', P .. 'later', header .. '\n' .. entry) == 0 then return false end
    lease.count(name, 'scheduled', -1)
    lease.count(name, 'cancelled', 1)
    cancelled.finish({entry})
    return true
end

return cancelling
