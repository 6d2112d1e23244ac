-- promote: scheduled and retried jobs that are due leave `later`: for the tail of their queue, or the head of their lane.
-- Schedules that are due stay there and are named: the worker works out which jobs they stand for and calls schedule_fire.
--
-- ARGV: now, most, seed (random: see sign)
-- role: worker
-- reply: [ how many were moved or put off, fewer than most where they are large, now, [schedule, definition, due, ...],
--          when the first record that is left is due; -1: there is none, what is wrong with a key that keeps retried jobs from
--          their lane; '': nothing ]
-- uses: bell check counters ends lane lane_names large later_records registry sign slices

local NAMED_MOST = 200 -- schedules in one answer, and slices.BYTES of their definitions
local RETRIED, SCHEDULE, BLANK = 108, 115, 32 -- "l", "s", " "
local FEW = 3          -- records are read without asking how large they may be
local READ_MOST = 1000 -- records looked at, for the case that many schedules stand before the jobs

local function header_of(record)
    local ends_at = find(record, '\n', 1, true)
    if ends_at then return sub(record, 1, ends_at - 1), sub(record, ends_at + 1) end
end

-- Returns the schedule that a record of `later` is of; nil: it is a job's.
local function schedule_of(record) return match(record, '^s ([%w_.-]+)\n$') end

-- Says where to a record goes whose lane was not met before: to a queue, to a lane, nowhere as a key keeps it from its lane, or to the dead, as it
-- cannot be moved; neither stops the others.
local function plan(record, moves)
    local header, entry = header_of(record)
    local queue, name = (header or ''):match('^q %S+ ([%w_.-]+) ([%w_.-]+)$')
    local into = (header or ''):match('^l %S+ ([%w_.-]+!?/[%w_.-]+/[%w_.-]*)$')
    local wrong = queue and check.wrong_kind('queue:' .. queue, 'list') or into and lane.wrong(into)
    if not queue and not into then
        moves.dead[#moves.dead + 1] = {lane = '//', reason = 'this record of `later` cannot be read', entry = record}
    elseif into and wrong then
        moves.put_off[#moves.put_off + 1] = record
        moves.wrong = wrong
    elseif wrong then
        moves.dead[#moves.dead + 1] = {queue = queue, type = name, reason = wrong, entry = entry}
    elseif queue then
        moves.to_queue[#moves.to_queue + 1] = {queue = queue, type = name, entry = entry}
    else
        moves.entries[into], moves.lanes[#moves.lanes + 1] = {entry}, into
    end
end

-- Says where the records go that stand behind so many. Most are of the lane of the one before, and need no second look: its name, `line`, stands
-- behind their tag, and they go behind the n others of that lane.
local function plan_all(records, passed, moves)
    local line, entries, n, skipped = '', nil, 0, 0
    for i = 1, #records do
        local record = records[i]
        local kind, blank = byte(record, 1, 2)
        local at = kind == RETRIED and blank == BLANK and find(record, ' ', 3, true)
        if at and (not entries or find(record, line, at, true) ~= at) then
            line = match(record, '^[^\n]*\n', at) or ''
            entries = moves.entries[sub(line, 2, -2)]
            n, skipped = entries and #entries or 0, #line
        end
        if at and entries then
            n = n + 1
            entries[n] = sub(record, at + skipped)
        else
            local name = kind == SCHEDULE and schedule_of(record)
            if name then
                moves.schedules[#moves.schedules + 1] = {record = record, name = name, place = passed + i}
            else
                plan(record, moves)
            end
        end
    end
end

-- Buries a job that cannot be moved.
local function bury(d, i)
    local tag, reason = 'later:' .. us(now) .. '.' .. i, 'promote: ' .. d.reason
    if not d.queue then return ends.bury(tag, d.lane, reason, d.entry) end
    counters.add(d.type, 'scheduled', -1)
    ends.bury_new(tag, d.queue, d.type, reason, d.entry)
end

-- Puts retried jobs off that a key of another kind keeps from their lane: they come again later.
local function put_off(records)
    local at = #records > 0 and us(later_records.again())
    for _, record in ipairs(records) do call('ZADD', P .. 'later', at, record) end
end

local function move(moves, seed)
    local were_empty, rung = {}, {}
    for _, job in ipairs(moves.to_queue) do
        if call('RPUSH', P .. 'queue:' .. job.queue, sign.write(job.entry, seed)) == 1 then were_empty[#were_empty + 1] = job.queue end
        registry.add(job.queue)
        large.note(job.queue, job.entry)
        counters.add(job.type, 'scheduled', -1)
        counters.add(job.type, 'enqueued', 1)
    end
    bell.arrived_all(were_empty)
    for _, into in ipairs(moves.lanes) do
        local queue, name = lane_names.parts(into)
        lane.give_back(into, moves.entries[into])
        counters.add(name, 'scheduled', -#moves.entries[into])
        rung[queue] = true
    end
    bell.ring_all(rung)
    for i, d in ipairs(moves.dead) do bury(d, i) end
end

-- Takes the jobs among the first records of `later` out of it, so many: what stands between the schedules.
local function remove(read, schedules)
    local last = read
    for i = #schedules, 0, -1 do
        local before = i > 0 and schedules[i].place or 0
        if before < last then call('ZREMRANGEBYRANK', P .. 'later', us(before), us(last - 1)) end
        last = before - 1
    end
end

-- Reads up to `most` jobs that are due, and the schedules among and before them, and says where they go. Returns how many records these are, and
-- whether large ones may be among them.
local function read_due(most, moves)
    local schedules, at, load = moves.schedules, 0, slices.load()
    local due, at_once, is_large = min(READ_MOST, call('ZCOUNT', P .. 'later', '-inf', us(now))), nil, false
    if due > FEW then at_once, is_large = large.later_at_once() end
    repeat
        local records, ended = slices.read('ZRANGE', P .. 'later', at, min(due - at, most - at + #schedules), load, at_once)
        plan_all(records, at, moves)
        at = at + #records
    until #records == 0 or ended or at - #schedules == most
    return at, is_large
end

-- Names the schedules that are due; a record whose schedule is gone goes. A key of another kind holds none.
local function name_schedules(schedules)
    local named, load, gone = {}, slices.load(), {}
    local there = not check.wrong_kind('schedules', 'hash')
    for i = 1, min(#schedules, NAMED_MOST) do
        local s = schedules[i]
        if there and not slices.fits(load, call('HSTRLEN', P .. 'schedules', s.name)) then break end
        local definition = there and call('HGET', P .. 'schedules', s.name)
        if not definition then
            gone[#gone + 1] = s.record
        else
            named[#named + 1], named[#named + 2] = s.name, definition
            named[#named + 1] = us(tonumber(call('ZSCORE', P .. 'later', s.record)))
        end
    end
    if #gone > 0 then call('ZREM', P .. 'later', unpack(gone)) end
    return named
end

local function promote(ARGV)
    local most, seed = tonumber(ARGV[2]), ARGV[3]
    if not is_whole(most, 1) or most > 1000 then return refuse('promote: most must be 1 to 1000') end
    if not is_name(seed) then return refuse('promote: its seed is not a valid name') end

    -- entries: of each of the lanes
    local moves = {to_queue = {}, lanes = {}, entries = {}, dead = {}, put_off = {}, schedules = {}, wrong = ''}
    local read, is_large = read_due(most, moves)
    local wrong = #moves.dead > 0 and check.wrong_kind('dead', 'zset') or #moves.to_queue > 0 and sign.wrong()
    if wrong then return check.refuse_key(wrong) end
    move(moves, seed)
    remove(read, moves.schedules)
    put_off(moves.put_off)
    local named = name_schedules(moves.schedules)
    local first = later_records.first()
    if is_large and not first then large.forget_later() end
    return {read - #moves.schedules, us(now), named, first and us(max(first, 1)) or '-1', moves.wrong}
end

return promote
