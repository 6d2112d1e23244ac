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

-- Puts entries back at the head of their lane, in their order, and has the type looked at again.
local function lane_return(lane, entries)
    local queue, type = lane_parts(lane)
    local reversed = {}
    for i = #entries, 1, -1 do reversed[#reversed + 1] = entries[i] end
    push('LPUSH', P .. 'lane:' .. lane, reversed)
    call('ZADD', P .. 'wake:' .. queue, us(now), type)
    call('ZREM', P .. 'held:' .. queue, type)
end

-- The same for entries of many lanes. leases: {token, entry} pairs; they are put back in the order of their leases.
local function lanes_return(leases)
    table.sort(leases, function(a, b)
        local at, ai = a[1]:match('^(%d+)%.([%w_-]+)')
        local bt, bi = b[1]:match('^(%d+)%.([%w_-]+)')
        at, bt = tonumber(at), tonumber(bt)
        return at < bt or at == bt and ai < bi
    end)
    local lanes, order, queues = {}, {}, {}
    for _, lease in ipairs(leases) do
        local lane = lane_of(lease[1])
        if not lanes[lane] then
            lanes[lane] = {}
            order[#order + 1] = lane
        end
        table.insert(lanes[lane], lease[2])
    end
    for _, lane in ipairs(order) do
        lane_return(lane, lanes[lane])
        queues[lane_parts(lane)] = true
    end
    for queue in pairs(queues) do bell_ring(queue) end
end
