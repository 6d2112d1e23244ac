-- settle_done: jobs that are simply done leave the leases of their worker: those of one type whose tokens are ARGV[first] to ARGV[last].
--
--   settle_done.plain(ARGV, worker, name, first, last)           of no batch: how many were stale; nil: a gate counts some of them in
--                                                          flight, and nothing was changed
--   settle_done.settle(ARGV, worker, name, batch, first, last)   of any, or none (''): how many were stale
--
-- uses: ends lease wake
local settle_done = {}

local function counts_in_flight(ARGV, first, last)
    for i = first, last do
        if find(ARGV[i], '~', 1, true) then return true end
    end
    return false
end

-- Counts the ends of a type that had a lease; returns how many were stale.
local function count(name, all, ended)
    if ended > 0 then lease.count(name, 'done', ended) end
    if ended < all then lease.count(name, 'stale', all - ended) end
    return all - ended
end

function settle_done.plain(ARGV, worker, name, first, last)
    if counts_in_flight(ARGV, first, last) then return nil end
    return count(name, last - first + 1, call('HDEL', P .. 'active:' .. worker, unpack(ARGV, first, last)))
end

-- Ends jobs of which some are counted in flight.
local function end_counted(ARGV, worker, name, first, last)
    local ended = 0
    for i = first, last do
        if call('HDEL', P .. 'active:' .. worker, ARGV[i]) == 1 then
            wake.release(ARGV[i])
            ended = ended + 1
        end
    end
    return count(name, last - first + 1, ended)
end

function settle_done.settle(ARGV, worker, name, batch, first, last)
    read_clock()
    local stale = settle_done.plain(ARGV, worker, name, first, last) or end_counted(ARGV, worker, name, first, last)
    local ended = last - first + 1 - stale
    if ended > 0 and batch ~= '' then ends.batch(batch, 'done', ended) end
    return stale
end

return settle_done
