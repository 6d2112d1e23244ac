-- backlog: what a forecast asks of the jobs of a type that stand in lanes: what they cost, how many of them wait for the same key, whether keys let them
-- start, and in which queues they stand. It looks at some lanes of each queue and reads some of their jobs; changes nothing.
--
--   backlog.begin()                a call begins
--   backlog.of(name, noted, any_paused)  a row for the reply of status, and it spends budget; nil: it was not looked at, or has no lane there
--
--   row = {"jobs", "slots": jobs of the lanes that were looked at, without those that are stopped, and what they cost by those that were read;
--          "costs": what one of these costs that were read, on average, as cost.lua writes it, where rules count slots by name;
--          "least", "most", "head": the cheapest and the dearest that was read, and the one that has its turn first;
--          "sure": true: all were read; "opens": "us": when their keys let the first of them start, now when they do; "ends": true: when a job ends;
--          "stopped": jobs of keys that are paused until somebody resumes them, or closed until their rules are renewed, "stop": [limit, index of the
--          rule, key, its pause as reasons.pause has it, or "closed"] of one of these, "till": "us";
--          "lanes": [{"jobs", "slots", "gates": [limit, index, state, the rule that the key has for itself or '', ...]}, ...] the longest with a key;
--          "queues": {queue: it is paused, ...} those where they stand}. Numbers are text
--
-- uses: cost gate key_pauses lane_names longest paused reasons slices time_budget types
local backlog = {}

local QUEUES_MOST = 16 -- looked at for a type,
local FEW = 4          -- where there are more, or one, only types with keys or costs are looked at, unless queues are paused
local LANES_MOST = 60  -- of it in all of these,
local RING_MOST = 10   -- in the ring of each,
local PAUSED_MOST = 20 -- of keys that are paused,
local LONGEST_MOST = 5 -- of the longest ones
local SLEEPERS = 100   -- gates at which lanes sleep, of a queue
local READ_MOST = 100  -- jobs of a type that are read for what they cost
local SHOWN = 5        -- of the longest lanes
local BYTES = 65536    -- of the jobs that a call reads

-- In this call: {name, paused} of queues, and whether these are all; queue -> gates at which lanes sleep; rule -> keys that are paused until somebody
-- resumes them; what may still be read.
local queues, all_queues, sleepers, stops, load

function backlog.begin() queues, sleepers, stops, load = nil, {}, nil, slices.load(BYTES) end

local function read_queues()
    local page = call('SSCAN', P .. 'queues', '0', 'COUNT', us(QUEUES_MOST))
    local names = page[2]
    sort(names)
    queues, all_queues = {}, page[1] == '0' and #names <= QUEUES_MOST
    for i = 1, min(#names, QUEUES_MOST) do
        local name = names[i]
        if lane_names.is_queue(name) then queues[#queues + 1] = {name = name, paused = paused.since(lane_names.usual_queue(name)) ~= ''} end
    end
end

local function sleepers_of(queue)
    local found = sleepers[queue]
    if not found then
        found = call_safe('ZRANGE', P .. 'sleep:' .. queue, '0', us(SLEEPERS - 1))
        sleepers[queue] = found
        time_budget.spend(#found / 4)
    end
    return found
end

local function read_stops()
    stops = {}
    for name in pairs(call('HLEN', P .. 'key_pauses') > 0 and key_pauses.endless().gates or {}) do
        local rule, key = match(name, '^([^/]*)/(.+)$')
        stops[rule] = stops[rule] or {}
        stops[rule][#stops[rule] + 1] = key
    end
    for _, keys in pairs(stops) do sort(keys) end
end

-- ---- Its lanes

local function look(found, queue, key)
    local name = queue.name .. '/' .. found.type.name .. '/' .. key
    if found.seen[name] then return end
    if found.left == 0 then
        found.whole = false
        return
    end
    found.left, found.seen[name] = found.left - 1, true
    local n = call_safe('LLEN', P .. 'lane:' .. name)
    if type(n) == 'number' and n > 0 then
        found.lanes[#found.lanes + 1] = {name = name, key = key, jobs = n, queue = queue, opens = now}
    end
end

local function look_in_ring(found, queue)
    local keys = call_safe('ZRANGE', P .. 'ring:' .. queue.name .. '/' .. found.type.name, '0', us(RING_MOST))
    for i = 1, min(#keys, RING_MOST) do look(found, queue, keys[i]) end
    found.whole = found.whole and #keys <= RING_MOST
end

local function look_at_sleepers(found, queue)
    local gates = sleepers_of(queue.name)
    for _, name in ipairs(gates) do
        local limit, key = match(name, '^([^#]*)#%d/(.+)$')
        if found.limits[limit] then look(found, queue, key) end
    end
    found.whole = found.whole and #gates < SLEEPERS
end

local function look_at_stops(found, queue)
    for rule in pairs(found.rules) do
        local keys = stops[rule] or {}
        for i = 1, min(#keys, PAUSED_MOST) do look(found, queue, keys[i]) end
    end
end

local function look_at_longest(found)
    for _, member in ipairs(call_safe('ZRANGE', P .. 'longest:' .. found.type.name, '0', us(LONGEST_MOST - 1), 'REV')) do
        local _, name, key = longest.lane_of(found.type.name, member)
        for _, queue in ipairs(queues) do
            if queue.name == name then look(found, queue, key) end
        end
    end
end

local function find_lanes(t)
    local found = {type = t, lanes = {}, costs = {}, seen = {}, rules = {}, limits = {}, left = LANES_MOST, whole = all_queues}
    for _, spec in ipairs(t.keyed) do found.rules[spec.name] = true end
    for _, limit in ipairs(t.sets) do found.limits[limit.name] = true end
    for _, queue in ipairs(queues) do look_in_ring(found, queue) end
    if #t.keyed == 0 then return found end
    look_at_longest(found)
    for _, queue in ipairs(queues) do look_at_stops(found, queue) end
    for _, queue in ipairs(queues) do look_at_sleepers(found, queue) end
    return found
end

-- ---- What is said of them

-- Estimates what all jobs of a lane cost, by those at its head.
local function price(found, lane, most)
    local t, usual = found.type, found.type.cost
    local entries = t.own_costs and slices.read('LRANGE', P .. 'lane:' .. lane.name, 0, most, load) or {}
    lane.read, lane.slots, lane.head, lane.first, lane.least, lane.most = #entries, 0, usual, t.usual, huge, 0
    for i, entry in ipairs(entries) do
        local c = types.job_cost(t, entry)
        local slots = cost.part(c)
        if i == 1 then lane.head, lane.first = slots, c end
        lane.slots, lane.least, lane.most = lane.slots + slots, min(lane.least, slots), max(lane.most, slots)
        found.costs[#found.costs + 1] = t.named and c or nil
    end
    time_budget.spend(#entries / 4)
    if #entries < lane.jobs then lane.slots = #entries > 0 and floor(lane.jobs * lane.slots / #entries) or lane.jobs * usual end
    if not t.own_costs then lane.read, lane.least, lane.most = lane.jobs, usual, usual end
end

-- Judges when the keys of a lane let its first job start, and which rule stops it until somebody resumes the key.
local function judge(found, lane)
    for _, spec in ipairs((types.keyed(found.type, lane.key))) do
        local g = gate.load_safe(spec.name .. '/' .. lane.key, spec.rule)
        local opens = spec.fixed and key_pauses.ENDLESS or g and gate.start(g, lane.first) or now
        if opens > lane.opens then lane.opens, lane.last, lane.closed = opens, spec, spec.fixed and 'closed' end
    end
    lane.stopped = lane.opens >= key_pauses.ENDLESS and lane.opens < huge
end

-- Says which of two lanes has its turn first: one of a queue that is not paused.
local function before(a, b)
    if not b or a.queue.paused ~= b.queue.paused then return not b or not a.queue.paused end
    return a.opens < b.opens
end

local function add_stopped(row, lane)
    row.stopped = row.stopped + lane.jobs
    local name = match(lane.last.name, '^[^#]+')
    row.stop = row.stop or {name, us(lane.last.rule.index), lane.key, lane.closed or reasons.key(name, lane.key)}
    row.till = us(lane.opens)
end

local function by_jobs(a, b) return a.jobs > b.jobs end

-- The longest lanes that have a key, with the states of their gates.
local function lane_rows(t, lanes)
    local rows = {}
    sort(lanes, by_jobs)
    for i = 1, #t.keyed > 0 and min(#lanes, SHOWN) or 0 do
        local gates = {}
        for _, spec in ipairs((types.keyed(t, lanes[i].key))) do
            local state = call_safe('GET', P .. 'gate:' .. spec.name .. '/' .. lanes[i].key)
            gates[#gates + 1], gates[#gates + 2] = match(spec.name, '^[^#]+'), us(spec.rule.index)
            gates[#gates + 1] = type(state) == 'string' and state or ''
            gates[#gates + 1] = spec.own and spec.rule.word or ''
        end
        rows[i] = {jobs = us(lanes[i].jobs), slots = us(lanes[i].slots), gates = gates}
    end
    return rows
end

-- Returns what jobs cost on average that were read, as text; nil: none was.
local function average(costs)
    local sums = {}
    for _, c in ipairs(costs) do
        for name, slots in pairs(type(c) == 'table' and c.parts or {}) do sums[name] = (sums[name] or #costs) + slots - 1 end
    end
    for name, slots in pairs(sums) do sums[name] = floor(slots / #costs + 0.5) end
    local c = cost.read(sums)
    return c and cost.text(c)
end

local function row_of(found)
    local row, first, lanes, read = {jobs = 0, slots = 0, least = huge, most = 0, stopped = 0, queues = {}}, nil, {}, 0
    local share = ceil(READ_MOST / max(1, #found.lanes))
    for _, lane in ipairs(found.lanes) do
        price(found, lane, share)
        judge(found, lane)
        row.queues[lane_names.usual_queue(lane.queue.name)] = lane.queue.paused
        if lane.stopped then
            add_stopped(row, lane)
        else
            lanes[#lanes + 1], read = lane, read + lane.read
            row.jobs, row.slots = row.jobs + lane.jobs, row.slots + lane.slots
            row.least, row.most = min(row.least, lane.least), max(row.most, lane.most)
            if before(lane, first) then first = lane end
        end
    end
    row.sure = found.whole and read == row.jobs or nil
    if first then
        row.head, row.ends = us(first.head), first.opens == huge or nil
        row.opens = first.opens < huge and us(first.opens) or nil
    end
    row.costs, row.lanes = average(found.costs), lane_rows(found.type, lanes)
    if row.least == huge then row.least = 0 end
    row.jobs, row.slots, row.least, row.most, row.stopped = us(row.jobs), us(row.slots), us(row.least), us(row.most), us(row.stopped)
    return row
end

-- True when a type has only one place, or so many, that there is nothing to be seen but the place. noted: its text in `types`.
local function is_plain(noted, any_paused)
    if any_paused or find(noted, 'lanes=', 1, true) or find(noted, 'costs=', 1, true) then return false end
    return #queues > FEW or #queues == 1 and all_queues
end

function backlog.of(name, noted, any_paused)
    if not queues then read_queues() end
    if is_plain(noted, any_paused) then return nil end
    local t = types.load(name)
    if not stops then read_stops() end
    local found = find_lanes(t)
    time_budget.spend(2 * #queues + 2 * (LANES_MOST - found.left))
    local row = #found.lanes > 0 and row_of(found) or nil
    gate.undo()
    return row
end

return backlog
