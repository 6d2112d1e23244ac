-- large: the queues into which Weir's scripts have put an entry that is not small, or into a lane of which. A claim reads many entries of any other
-- queue, or lane, at once, and only few of these. Entries that another client pushed into a queue are not listed: one call may read MANY large ones, and
-- leaves all that are too many.
--
--   large  hash: queue -> '', from such an entry on until a claim that reads more than a few entries has read the queue to its end
--                queue/ -> '', from such an entry in one of its lanes on until the queue is forgotten
--                /later -> '', from such a record of `later` on until a promote that reads more than a few has left none there
--
--   large.note(queue, entry)                    lists the queue if that entry is large
--   large.note_some(queue, ARGV, first, last)   lists it if one of these entries of a chunk is
--   large.note_lane(queue, entries, first)      the same of entries that come to a lane, from a place in a list on
--   large.note_later(records)                   the same of records that come to `later`, as ZADD takes them
--   large.lane_at_once(queue)                   returns how many entries of a lane may be read at once
--   large.at_once(queue)                        returns how many entries may be read at once, and whether the queue is listed
--   large.later_at_once()                       the same of `later`
--   large.forget(queue)                         takes the queue off the list; forget_lanes: its lanes; forget_later: `later`
local large = {}

local SMALL = 8192 -- bytes
local MANY = 64    -- so many entries of that size are what one call may read: slices.BYTES
local FEW = 3      -- entries of unknown size that are read at once
local LATER = '/later'

-- A chunk of append with more jobs is below 128 KiB in all (producer/stream.h), so MANY entries of such chunks are below 1 MiB.
local CHUNK_FEW = 16

-- Notes a large entry. The list only keeps calls short, so a key of another kind in its place fails no script.
function large.note(queue, entry)
    if #entry > SMALL then call_safe('HSET', P .. 'large', queue, '') end
end

function large.note_some(queue, ARGV, first, last)
    if last - first >= CHUNK_FEW then return end
    for i = first, last do
        if #ARGV[i] > SMALL then return large.note(queue, ARGV[i]) end
    end
end

function large.note_lane(queue, entries, first)
    for i = first, #entries do
        if #entries[i] > SMALL then return large.note(queue .. '/', entries[i]) end
    end
end

function large.note_later(records)
    for i = 2, #records, 2 do
        if #records[i] > SMALL then return large.note(LATER, records[i]) end
    end
end

function large.lane_at_once(queue) return (large.at_once(queue .. '/')) end

function large.at_once(queue)
    local listed = call_safe('HEXISTS', P .. 'large', queue) ~= 0
    return listed and FEW or MANY, listed
end

function large.later_at_once() return large.at_once(LATER) end

function large.forget_later() large.forget(LATER) end

function large.forget(queue) call_safe('HDEL', P .. 'large', queue) end

function large.forget_lanes(queue) call_safe('HDEL', P .. 'large', queue .. '/', queue .. '!/') end

return large
