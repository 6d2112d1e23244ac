-- coming: which jobs of some types start next, by the turns of types and keys; touches nothing.
--
-- ARGV: now, most (jobs, 1 to 50), type, type ... (at most 20)
-- role: viewer
-- reply: JSON: {"now": "us", "jobs": [{"type", "queue", "id", "key", "cost" where it names its own, "costs": all of it, as cost.lua writes it, where rules count slots by name, "opens_at", "list", "place", "of": as find_job has them}, ...]}
--        First those in lanes whose keys may start, in the order of their turns, then those whose key has a closed gate, with "opens_at": "us", or
--        "shut": true: no time opens it; then those that no claim has met yet. Of a lane at a closed gate the first job alone. Paused queues have none; of more than 100 queues,
--        and of many lanes and jobs of other types before these, some are not looked at.
--
-- writes: nothing
-- uses: body cost heads job_text paused slices time_budget types

local QUEUES_MOST = 100
local TYPES_MOST = 20
local LINES_LEAVE = 300 -- looks of the budget for what comes after the lanes that have their turn,
local GATES_LEAVE = 200 -- and for what comes after closed gates
local KEY_MOST = 128 -- bytes

local room -- what this call may still read of bodies

local function own_key(entry)
    local key = job_text.value(entry, 'key')
    return type(key) == 'string' and sub(key, 1, KEY_MOST) or nil
end

-- key: of its lane; nil: it stands in its queue. place: from the head on.
local function row_of(entry, name, queue, key, place, opens_at)
    local _, at = heads.attrs_of(entry)
    local t, slots = types.load(name), body.cost(entry)
    local path, list = t.path, key and 'lane:' .. queue .. '/' .. name .. '/' .. key or 'queue:' .. queue
    return {id = sub(body.id(entry, at) or '', 1, KEY_MOST), type = name, queue = queue, opens_at = opens_at, cost = slots and us(slots),
            costs = t.named and cost.text((types.job_cost(t, entry))) or nil,
            list = list, place = us(place), of = us(call('LLEN', P .. list)),
            key = path and body.shown_key(entry, path, key or body.key(entry, path)) or own_key(entry)}
end

local function read_lane(queue, name, key, most)
    return slices.read('LRANGE', P .. 'lane:' .. queue .. '/' .. name .. '/' .. key, 0, most, room)
end

-- ---- Whose turn it is

-- Returns when a type was served last at the gate where it waits.
local function ticket_of(queue, t)
    local ticket = call('ZSCORE', P .. 'wait:' .. queue .. '/-', t.name)
    time_budget.spend(1 + #t.global + #t.paused)
    for _, list in ipairs{t.global, t.paused} do
        for _, spec in ipairs(list) do
            ticket = ticket or call('ZSCORE', P .. 'wait:' .. queue .. '/' .. spec.name, t.name)
        end
    end
    return tonumber(ticket or now)
end

-- How many starts a key has in a round.
local function share_of(t, key)
    local share = 1
    for _, limit in ipairs(t.weighted) do share = max(share, tonumber(call('HGET', P .. 'weights', limit .. '/' .. key) or 1)) end
    return share
end

-- The lanes of a type in a queue, those that have their turn first; nil: none has one.
local function line_of(queue, name, most)
    local keys = call('ZRANGE', P .. 'ring:' .. queue .. '/' .. name, '0', us(most - 1))
    time_budget.spend(1 + #keys / 4)
    if #keys == 0 then return nil end
    local line = {name = name, queue = queue, ticket = ticket_of(queue, types.load(name)), lanes = {}, first = 1}
    for i, key in ipairs(keys) do line.lanes[i] = {key = key, at = 1} end
    return line
end

-- The lane has its turn for the first time.
local function open_lane(line, lane, most)
    lane.share = share_of(types.load(line.name), lane.key)
    local had = lane.share > 1 and call_safe('HGET', P .. 'credit:' .. line.queue .. '/' .. line.name, lane.key)
    lane.left = lane.share - min(tonumber(had or 0) or 0, lane.share - 1)
    lane.entries = read_lane(line.queue, line.name, lane.key, min(most, max(lane.share, ceil(most / #line.lanes) + 1)))
end

local function by_ticket(a, b)
    if a.ticket ~= b.ticket then return a.ticket < b.ticket end
    return a.queue .. '/' .. a.name < b.queue .. '/' .. b.name
end

-- The first lane of a line that has a job left; nil: none has.
local function first_lane(line, most)
    while line.lanes[line.first] and not slices.is_full(room) do
        local lane = line.lanes[line.first]
        if not lane.entries then open_lane(line, lane, most) end
        if lane.entries[lane.at] then return lane end
        line.first = line.first + 1
    end
end

-- Takes the next job of a line; nil: it has no more. A lane goes behind the others when it has had its share.
local function take(line, most)
    local lane = first_lane(line, most)
    if not lane then return nil end
    local row = row_of(lane.entries[lane.at], line.name, line.queue, lane.key, lane.at)
    lane.at, lane.left = lane.at + 1, lane.left - 1
    if lane.left == 0 then
        lane.left = lane.share
        line.first = line.first + 1
        line.lanes[#line.lanes + 1] = lane
    end
    return row
end

-- Each line has a turn, then goes behind the others.
local function take_turns(lines, jobs, most)
    sort(lines, by_ticket)
    local first = 1
    while lines[first] and #jobs < most do
        local row = take(lines[first], most)
        if row then
            jobs[#jobs + 1] = row
            lines[#lines + 1] = lines[first]
        end
        first = first + 1
    end
end

-- ---- Whose turn comes later

-- Adds the lanes of these types that wait at closed gates of their keys.
local function add_asleep(asleep, queue, wanted, most)
    local room_left = min(2 * most, time_budget.left() - GATES_LEAVE)
    if room_left <= 0 then return end
    local gates = call('ZRANGE', P .. 'sleep:' .. queue, '0', us(floor(room_left)), 'WITHSCORES')
    time_budget.spend(1 + #gates / 2)
    for i = 1, #gates, 2 do
        local node = call('ZRANGE', P .. 'wait:' .. queue .. '/' .. gates[i], '0', '0')[1] or ''
        local name, key = match(node, '^([^/]+)/(.*)$')
        if wanted[name] then asleep[#asleep + 1] = {at = tonumber(gates[i + 1]), queue = queue, name = name, key = key} end
    end
end

local function by_opening(a, b) return a.at < b.at or a.at == b.at and a.key < b.key end

local function take_asleep(asleep, jobs, most)
    sort(asleep, by_opening)
    for _, lane in ipairs(asleep) do
        local entry = #jobs < most and read_lane(lane.queue, lane.name, lane.key, 1)[1]
        if entry then
            local row = row_of(entry, lane.name, lane.queue, lane.key, 1, lane.at > now and lane.at < 2 ^ 53 and us(lane.at) or nil)
            row.shut = lane.at >= 2 ^ 53 or nil
            jobs[#jobs + 1] = row
        end
    end
end

local function take_queue(queue, wanted, jobs, most, entries)
    time_budget.spend(1 + entries)
    for i, entry in ipairs(slices.read('LRANGE', P .. 'queue:' .. queue, 0, entries, room)) do
        local name = #jobs < most and body.type(entry)
        if wanted[name] then jobs[#jobs + 1] = row_of(entry, name, queue, nil, i) end
    end
end

-- ---- All of it

-- Looks at the lines and lanes of a queue.
local function look(queue, names, wanted, lines, asleep, most)
    local rings = {}
    for i, name in ipairs(names) do rings[i] = P .. 'ring:' .. queue .. '/' .. name end
    time_budget.spend(1 + #rings / 4)
    if time_budget.left() > LINES_LEAVE and call('EXISTS', unpack(rings)) > 0 then
        for _, name in ipairs(names) do lines[#lines + 1] = line_of(queue, name, most) end
    end
    add_asleep(asleep, queue, wanted, most)
end

local function coming(ARGV)
    local most, names, wanted = tonumber(ARGV[2]), {}, {}
    for i = 3, #ARGV do
        names[#names + 1] = is_name(ARGV[i]) and ARGV[i] or nil
        wanted[ARGV[i]] = true
    end
    if not is_whole(most, 1) or most > 50 or #names ~= #ARGV - 2 or #names == 0 or #names > TYPES_MOST then
        return refuse('coming: wants now, most from 1 to 50, 1 to 20 types')
    end
    room = slices.load()
    time_budget.begin()
    local queues = call('SSCAN', P .. 'queues', '0', 'COUNT', us(QUEUES_MOST))[2]
    local jobs, lines, asleep, open = {}, {}, {}, {}
    sort(queues)
    for _, queue in ipairs(queues) do
        if #open < QUEUES_MOST and is_name(queue) and paused.since(queue) == '' then open[#open + 1] = queue end
    end
    for _, queue in ipairs(open) do look(queue, names, wanted, lines, asleep, most) end
    take_turns(lines, jobs, most)
    take_asleep(asleep, jobs, most)
    for i, queue in ipairs(open) do -- the same share of what is left for each
        local entries = min(most, floor(time_budget.left() / (#open + 1 - i)))
        if #jobs < most and entries > 0 then take_queue(queue, wanted, jobs, most, entries) end
    end
    return answer{now = us(now), jobs = jobs}
end

return coming
