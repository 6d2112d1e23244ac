-- promote: scheduled and retried jobs that are due leave `later`: for the tail of their queue, or the head of their lane.
--
-- KEYS[1] prefix
-- ARGV: now, most
-- reply: how many were moved; most of them: there may be more
-- uses: core/base.lua core/bell.lua queue/lease.lua queue/lane.lua

local most = tonumber(ARGV[2])
if not most or most < 1 or most > 1000 then return refuse('promote: most must be 1 to 1000') end

-- A foreign value under one of our names must not stop the others.
local function failed(reply) return type(reply) == 'table' and reply.err end

local records = call('ZRANGEBYSCORE', P .. 'later', '-inf', us(now), 'LIMIT', 0, most)

local function to_queue(header, entry)
    local queue, type = header:match('^q %S+ ([%w_.-]+) ([%w_.-]+)$')
    if not queue then return false end
    if failed(redis.pcall('RPUSH', P .. 'queue:' .. queue, entry)) then return false end
    count(type, 'scheduled', -1)
    count(type, 'enqueued', 1)
    return true
end

local returning, order = {}, {}
local function to_lane(header, entry)
    local lane = header:match('^l %S+ ([%w_.-]+/[%w_.-]+/[%w_.-]*)$')
    if not lane then return false end
    if not returning[lane] then
        if failed(redis.pcall('LLEN', P .. 'lane:' .. lane)) then return false end
        returning[lane] = {}
        order[#order + 1] = lane
    end
    table.insert(returning[lane], entry)
    local _, type = lane_parts(lane)
    count(type, 'scheduled', -1)
    return true
end

for i, record in ipairs(records) do
    local header, entry = record:match('^([^\n]*)\n(.*)$')
    if not (header and (to_queue(header, entry) or to_lane(header, entry))) then
        bury('later:' .. us(now) .. '.' .. i, '//', 'promote: this record of `later` cannot be read', record)
    end
end
for _, lane in ipairs(order) do
    lane_return(lane, returning[lane])
    bell_ring((lane_parts(lane)))
end
if #records > 0 then call('ZREM', P .. 'later', unpack(records)) end
return #records
