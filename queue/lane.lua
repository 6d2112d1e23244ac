-- lane: the jobs of one (queue, type, key) that were looked at and denied, first in first out.
--
-- In this version a type has one gate, that of the limit of its own name, and so one lane in each queue; it stands in
-- wake:<queue> with the time at which that gate opens, exactly while its lane is not empty and it is not held.

-- Long lists go in slices: unpack fails near 8,000 values.
local function push(command, list, values)
    for i = 1, #values, 4000 do
        call(command, list, unpack(values, i, min(i + 3999, #values)))
    end
end

-- What is wrong with the keys that lane_return writes; nil: nothing.
local function wrong_lane(lane)
    local queue = lane_parts(lane)
    return wrong_kind('lane:' .. lane, 'list') or wrong_kind('wake:' .. queue, 'zset') or wrong_kind('held:' .. queue, 'zset')
end

-- Puts entries back at the head of their lane, in their order, and has the type looked at again.
local function lane_return(lane, entries)
    local queue, type = lane_parts(lane)
    local reversed = {}
    for i = #entries, 1, -1 do reversed[#reversed + 1] = entries[i] end
    push('LPUSH', P .. 'lane:' .. lane, reversed)
    call('ZADD', P .. 'wake:' .. queue, us(now), type)
    call('ZREM', P .. 'held:' .. queue, type)
end

-- The same for leases: {token =, lane =, entry =} each, of any lanes; they are put back in the order in which they were granted.
local function lanes_return(leases)
    for _, lease in ipairs(leases) do
        local turn, index = lease.token:match('^(%d+)%.([%w_-]+)')
        lease.turn, lease.index = tonumber(turn), 0
        for i = 1, #index do lease.index = lease.index * 128 + index:byte(i) end -- `<` on strings asks the server's locale
    end
    table.sort(leases, function(a, b) return a.turn < b.turn or a.turn == b.turn and a.index < b.index end)
    local lanes, order, queues = {}, {}, {}
    for _, lease in ipairs(leases) do
        if not lanes[lease.lane] then
            lanes[lease.lane] = {}
            order[#order + 1] = lease.lane
        end
        table.insert(lanes[lease.lane], lease.entry)
    end
    for _, lane in ipairs(order) do
        lane_return(lane, lanes[lane])
        queues[lane_parts(lane)] = true
    end
    for queue in pairs(queues) do bell_ring(queue) end
end
