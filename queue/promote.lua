-- promote: scheduled and retried jobs that are due leave `later`: for the tail of their queue, or the head of their lane.
--
-- KEYS[1] prefix
-- ARGV: now, most
-- reply: how many were moved; most of them: there may be more
-- uses: core/base.lua core/now.lua core/bell.lua queue/check.lua queue/lease.lua queue/lane.lua

local most = tonumber(ARGV[2])
if not is_whole(most, 1) or most > 1000 then return refuse('promote: most must be 1 to 1000') end

local records = call('ZRANGEBYSCORE', P .. 'later', '-inf', us(now), 'LIMIT', 0, most)
local to_queue, to_lane, dead = {}, {}, {} -- dead: what cannot be moved must not stop the others

local function plan(record)
    local header, entry = record:match('^([^\n]*)\n(.*)$')
    local queue, type = (header or ''):match('^q %S+ ([%w_.-]+) ([%w_.-]+)$')
    local lane = (header or ''):match('^l %S+ ([%w_.-]+/[%w_.-]+/[%w_.-]*)$')
    local wrong = queue and wrong_kind('queue:' .. queue, 'list') or lane and wrong_lane(lane)
    if wrong or not queue and not lane then
        dead[#dead + 1] = {reason = wrong or 'this record of `later` cannot be read', record = record}
    elseif queue then
        to_queue[#to_queue + 1] = {queue = queue, type = type, entry = entry}
    else
        if not to_lane[lane] then
            to_lane[lane] = {}
            to_lane[#to_lane + 1] = lane
        end
        table.insert(to_lane[lane], entry)
    end
end

for _, record in ipairs(records) do plan(record) end
local wrong = #dead > 0 and wrong_kind('dead', 'zset')
if wrong then return refuse_key(wrong) end

for _, job in ipairs(to_queue) do
    call('RPUSH', P .. 'queue:' .. job.queue, job.entry)
    count(job.type, 'scheduled', -1)
    count(job.type, 'enqueued', 1)
end
for _, lane in ipairs(to_lane) do
    local queue, type = lane_parts(lane)
    lane_return(lane, to_lane[lane])
    count(type, 'scheduled', -#to_lane[lane])
    bell_ring(queue)
end
for i, d in ipairs(dead) do bury('later:' .. us(now) .. '.' .. i, '//', 'promote: ' .. d.reason, d.record) end
if #records > 0 then call('ZREM', P .. 'later', unpack(records)) end
return #records
