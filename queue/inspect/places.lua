-- places: all places where a job may be, gone through a page at a time. A walk only reads.
--
-- A walk keeps a stack of places, each with how far it has been read ('' at first). A page looks at those on top, and names what
-- takes their place. Places that another names are looked at before the rest of it.
-- Jobs move while one looks, mostly from queues through lanes to leases: the places come in that order. Lists are read from
-- their tails, so that none is passed over while others leave at the head. `later` is read from the job that is due first, `dead` and `kept` from
-- the one that ended last.
--
--   place: '' (the first: names the others; from: the last so many of them), finished, queues:<kind> (names <kind>:<queue> of all queues), queue:<queue>,
--          wake:<queue> (names the gates at which types wait), wait:<queue>/<gate> and held:<queue> (name the rings of their types),
--          ring:<queue>/<type> and sleep:<queue> (the last jobs of their lanes; names lanes that have more, and asleep:<queue>/<gate>
--          where many sleep at one), lane:<lane>,
--          halted (names aside:<batch> of batches that are paused), asides (the same of others), aside:<batch>, workers (names
--          active:<worker>), active:<worker>, later, dead, kinds (names kept:<type> of all types), kept:<type> (done jobs that are remembered),
--          parked (only measured: jobs in lanes, by the counters of their types)
--   from:  how far it has been read. Of kept: how many were passed; of a list: <passed>[+<moved>]: entries at its tail, and those that were moved to its head; of a scan:
--          <cursor>[+<passed>]; of later and dead: <score>:<passed>: those of that score
--
--   places.stack(words, first)  the stack of the words from there on, its top first: place, from, ...; none: the first place. nil: they
--                               are wrong
--   places.words(stack)         the same back; nil: nothing is left
--   places.walk(stack, visitor, most)  looks at places until about most entries were looked at, or time is up; a place counts as one, too
--     visitor.only              only where these may be: {id =, queue =, type =, keys = {...}, batch =, worker =, states = {<state> = true},
--                               times = {later =, dead = {from =, to =}}}: of records with such a score
--     visitor.text              what is wanted has that text in it; nil: nothing is known
--     visitor.wants(entry, reason, queue, type, key)   is it one of those? What its place does not say is nil; reason: of a dead job
--     visitor.meet(state, lane, entry, more)           it is; more: what described.job adds to
--       returns whether the walk ends there; how it will have left its place: 'gone', 'first' (it is the head of the same list then), or
--       nil; and how many entries more that counts for
--     visitor.counts            meet needs the state alone, moves nothing and goes on: the rest is most of the work where very many are met
--     visitor.moves             some will have left their places: what is done with them then takes most of the time
--     visitor.measures          nothing is looked at: how many jobs there are in all
--   places.looked()             jobs that the walk has looked at, or measured
--   places.bytes()              that it has read
--
-- uses: body counters described heads large lease sign slices time_budget
local places = {}

local LAST = 8    -- jobs of a lane that are looked at with others
local SHARE = 8   -- a lane takes Redis as long as so many of its jobs
local FEW = 8     -- lanes at the gate of a key that are looked at with others
local NAMES = 50  -- that a place gives at once; a cursor has them all
local QUICK = 4   -- entries of a list count as one where none of them has the text that is looked for, but for those
local DEEP = 50000 -- with so many on both sides: to go there takes Redis longer than to look
local WORDS_MOST = 20000
local AT = 64           -- "@"
local STEP = 128            -- entries of one look: the clock is asked between two of them,
local AT_ONCE = 25          -- and for so many entries that are met,
local FOUND_AT_ONCE = 5     -- or lanes
local LATE_US = 1000       -- of a page: who waits for a start waits behind it, and three may search at a time
local MOVES_LATE_US = 800   -- where some will leave their places: that takes longer than to find them

local visitor, over, named, late_us -- of one walk; over: it ends here. named: places that the look under way names, each with its from
local left, load, looked   -- entries that it may still look at; bytes that it may still read; jobs
local held                 -- <queue>/<type> -> is it?

local function name_place(place, from) named[#named + 1], named[#named + 2] = place, from or '' end

local function some(text) return text ~= '' and text or nil end

-- True when the walk has come to its end by the clock. It is asked for each thing of a look, behind so many others, `step` at once.
local function is_late(seen, step)
    if seen > 0 and seen % step == 0 then over = over or time_budget.is_late(late_us) end
    return over
end

-- ---- Looking at one

local function wants(entry, of_lane, reason)
    looked = looked + 1
    return visitor.wants(entry, reason, described.lane(of_lane))
end

local function meet(state, of_lane, entry, more)
    local ends, to, cost = visitor.meet(state, of_lane, entry, more)
    if visitor.moves then late_us = MOVES_LATE_US end
    over, left = over or ends, left - (cost or 0)
    return to
end

-- Of one that waits for a worker, in a queue or lane.
local function state_in_line(state, of_lane, entry)
    local queue, name = match(of_lane, '^[^/]*'), match(of_lane, '^[^/]*/([^/]+)') or body.type(entry)
    if not name then return state end
    local node = queue .. '/' .. name
    if held[node] == nil then held[node] = type(call_safe('ZSCORE', P .. 'held:' .. queue, name)) == 'string' end
    return held[node] and 'held' or state
end

-- ---- Lists

-- The entry in what a list of that kind holds, and its lane; nil: it is no job.
local readers = {}

function readers.queue(item, name)
    item = sign.read(item)
    return item, name
end

function readers.lane(item, name) return item, name end

function readers.aside(item)
    local of_lane, entry = match(item, '^(%S*) ?\n(.*)$')
    return entry or item, of_lane or '//'
end

local STATES = {queue = 'waiting', lane = 'parked', aside = 'aside'}

-- Meets an entry that has so many of a list behind it.
local function meet_in_list(place, kind, behind, of_lane, entry, item)
    local state = STATES[kind]
    if kind == 'queue' or kind == 'lane' then state = state_in_line(state, of_lane, entry) end
    if visitor.counts then return meet(state) end
    local length = call('LLEN', P .. place)
    return meet(state, of_lane, entry, {list = place, place = us(length - behind), of = us(length), item = item})
end

-- How many of a list may be read at once; nil: as slices says.
local function at_once(kind, name)
    if kind ~= 'queue' then return nil end
    local many, is_large = large.at_once(name)
    return not is_large and many or nil
end

-- How many entries may be read where most may be looked at.
local function most_read(place, most, passed)
    if not visitor.text or passed > DEEP and call('LLEN', P .. place) - passed > DEEP then return most end
    return most * QUICK
end

-- True when none of these has the text that is looked for.
local function have_none(items)
    local text = visitor.text
    for i = 1, text and #items or 0 do
        if find(items[i], text, 1, true) then return false end
    end
    return text
end

local function look_at_list(place, most, from)
    local kind, name = match(place, '^(%a+):(.*)$')
    local passed, moved = match(from, '^(%d*)%+?(%d*)$')
    passed, moved = tonumber(passed) or 0, tonumber(moved) or 0
    if moved > 0 then most = min(most, call('LLEN', P .. place) - moved - passed) end
    if most < 1 then return '' end
    local items, all = slices.last(P .. place, most_read(place, most, passed), load, passed, nil, at_once(kind, name))
    if kind == 'queue' then name = name .. '//' end
    local read, before, at = readers[kind], passed, 0
    if have_none(items) then
        at, passed, looked, left = #items, passed + #items, looked + #items, left - ceil(#items / QUICK)
    end
    while at < #items and not is_late(at, AT_ONCE) do
        local entry, of_lane = read(items[at + 1], name)
        local to = entry and wants(entry, of_lane) and meet_in_list(place, kind, before + at, of_lane, entry, items[at + 1])
        if not to then passed = passed + 1 end
        if to == 'first' then moved = moved + 1 end
        at, left = at + 1, left - 1
    end
    if all and at == #items and moved == 0 then return '' end
    return us(passed) .. (moved > 0 and '+' .. us(moved) or '')
end

-- Where jobs will have left their places, none is read twice in one page.
local function look_at_lane(_, _, name)
    local rest = look_at_list('lane:' .. name, visitor.moves and max(left, LAST) or LAST, '')
    if rest ~= '' then name_place('lane:' .. name, rest) end
end

-- ---- Scans

local function scan(command, key, most, from)
    local page = call(command, P .. key, some(match(from, '^%d*')) or '0', 'COUNT', us(min(most, NAMES)))
    return page[1] ~= '0' and page[1] or '', page[2]
end

-- Looks at the elements of a zset or hash that a scan from a cursor on has found, each with what belongs to it, until the walk is over.
-- Returns what is left.
local function look_at_found(found, start, passed, cursor, look, arg)
    local count, at = #found / 2, passed
    while at < count and not is_late(at - passed, FOUND_AT_ONCE) do
        at, left = at + 1, left - 1
        look(found[2 * at - 1], found[2 * at], arg)
    end
    if at < count then return start .. '+' .. us(at) end
    if cursor == '0' or cursor == '' then return '' end
    return at > count and cursor .. '+' .. us(at - count) or cursor
end

local function read_from(from)
    local cursor, passed = match(from, '^(%d*)%+?(%d*)')
    return some(cursor) or '0', tonumber(passed) or 0
end

-- A type whose ring is not empty waits at one gate, or is held.
local function name_gates(place, most, from)
    local queue = match(place, '^wake:(.*)$')
    local rest, gates = scan('ZSCAN', place, most, from)
    left = left - #gates / 2
    if from == '' then name_place('held:' .. queue) end
    for i = 1, #gates, 2 do
        if gates[i] ~= '*' then name_place('wait:' .. queue .. '/' .. gates[i]) end
    end
    return rest
end

local function name_rings(place, most, from)
    local queue = match(place, '^%a+:([^/]*)')
    local rest, kinds = scan('ZSCAN', place, most, from)
    left = left - #kinds / 2
    for i = 1, #kinds, 2 do name_place('ring:' .. queue .. '/' .. kinds[i]) end
    return rest
end

local function look_at_keyed_lane(key, _, path) look_at_lane(nil, nil, path .. key) end

local function look_at_ring(place, most, from)
    local path = match(place, '^ring:(.*)$') .. '/'
    for _, key in ipairs(visitor.only.keys or {}) do
        if call('ZSCORE', P .. place, key) then name_place('lane:' .. path .. key) end
    end
    if visitor.only.keys then return '' end
    local start, passed = read_from(from)
    local rest, keys = scan('ZSCAN', place, ceil(most / SHARE), start)
    return look_at_found(keys, start, passed, rest, look_at_keyed_lane, path)
end

-- True when a lane that waits at the gate of a key may be wanted.
local function is_lane_wanted(node)
    local name, key = match(node, '^([^/]*)/(.*)$')
    local keys, wanted = visitor.only.keys, not visitor.only.type or name == visitor.only.type
    for i = 1, keys and #keys or 0 do
        if key == keys[i] then return wanted end
    end
    return wanted and not keys
end

local function look_at_sleeper(node, _, queue)
    if is_lane_wanted(node) then look_at_lane(nil, nil, queue .. '/' .. node) end
end

local function look_at_sleepers_of(gate_name, _, queue)
    local key, path = match(gate_name, '/.*$'), queue .. '/' .. gate_name
    if key and not is_lane_wanted((visitor.only.type or '') .. key) then return end
    if call('ZCARD', P .. 'wait:' .. path) > FEW then return name_place('asleep:' .. path) end
    for _, node in ipairs(call('ZRANGE', P .. 'wait:' .. path, '0', '-1')) do
        if over then
            name_place('lane:' .. queue .. '/' .. node)
        else
            look_at_sleeper(node, nil, queue)
        end
    end
end

-- Looks at the sleepers of one gate of a key, which many types may share.
local function look_at_sleepers_of_one(place, most, from)
    local path, start, passed = match(place, '^asleep:(.*)$'), read_from(from)
    local rest, nodes = scan('ZSCAN', 'wait:' .. path, ceil(most / SHARE), start)
    return look_at_found(nodes, start, passed, rest, look_at_sleeper, match(path, '^[^/]*'))
end

local function look_at_sleepers(place, most, from)
    local start, passed = read_from(from)
    local rest, gates = scan('ZSCAN', place, ceil(most / SHARE), start)
    return look_at_found(gates, start, passed, rest, look_at_sleepers_of, match(place, '^sleep:(.*)$'))
end

local function running(worker, token)
    local ok, info = pcall(json_read, call('HGET', P .. 'active:' .. worker, '@') or '')
    info = ok and type(info) == 'table' and info or {}
    local pid, slot = tonumber(info.pid), lease.slot_of(token)
    return {worker = {name = worker, host = type(info.host) == 'string' and some(info.host) or nil, pid = is_whole(pid) and us(pid) or '0'},
            token = token, since = slot > 0 and described.number(slot) or nil, lease_until = described.number(tonumber(call('ZSCORE', P .. 'workers', worker)))}
end

local function look_at_lease(token, entry, worker)
    if token == '@' then return end
    local of_lane = lease.lane_of(token) or '//'
    if not wants(entry, of_lane) then return end
    meet('running', of_lane, entry, not visitor.counts and running(worker, token) or nil)
end

local function look_at_leases(place, most, from)
    local start, passed = read_from(from)
    local leases, cursor = slices.scan('HSCAN', P .. place, start, most, load)
    return look_at_found(leases, start, passed, cursor, look_at_lease, match(place, '^active:(.*)$'))
end

-- ---- Records

-- Reads a record of later or dead: state, lane, entry, and the reason of a dead job; nil: it is no job.
local function read_record(place, record)
    local header, at = match(record, '^([^\n]*)\n?()')
    if place == 'dead' then
        local of_lane, reason = match(header, '^%S+ (%S*) ?(.*)$')
        return 'dead', of_lane or '//', sub(record, at), reason and some(reason)
    end
    if find(header, '^s %S+$') then return nil end
    local queue, kind = match(header, '^q %S+ (%S+) (%S+)$')
    if queue then return 'scheduled', queue .. '/' .. kind .. '/', sub(record, at) end
    return 'retry', match(header, '^l %S+ (.+)$') or '//', sub(record, at)
end

local function meet_record(place, record, score, state, of_lane, entry, reason)
    if place == 'dead' then return meet(state, of_lane, entry, {since = described.number(tonumber(score)), reason = reason, item = record, score = score}) end
    return meet(state, of_lane, entry, {start = described.number(tonumber(score)), header = match(record, '^[^\n]*'), item = record, score = score})
end

-- Counts the records that come before those of that score.
local function count_before(place, score)
    if place == 'dead' then return call('ZCOUNT', P .. place, '(' .. score, '+inf') end
    return call('ZCOUNT', P .. place, '-inf', '(' .. score)
end

local function read_records(place, rank, most)
    if place == 'dead' then return slices.last(P .. place, most, load, rank, 'ZRANGE') end
    return slices.read('ZRANGE', P .. place, rank, most, load)
end

local ANY_TIME = {from = '-inf', to = '+inf'}

local function range_of(place) return visitor.only.times and visitor.only.times[place] or ANY_TIME end

-- How many records there are up to the last one whose score may be wanted.
local function count_until(place, range)
    if range == ANY_TIME then return WHOLE_MOST end
    if place == 'dead' then return call('ZCOUNT', P .. place, range.from, '+inf') end
    return call('ZCOUNT', P .. place, '-inf', range.to)
end

local function look_at_records(place, most, from)
    local range = range_of(place)
    local score, passed = match(from, '^(.*):(%d*)')
    score = score or place == 'dead' and range.to or place == 'later' and range.from
    local rank, at, gone, gone_score = count_before(place, score) + (tonumber(passed) or 0), 0, 0, nil
    local behind = count_until(place, range) - rank
    if behind < 1 then return '' end
    local records, all = read_records(place, rank, min(most, behind))
    while at < #records and not is_late(at, AT_ONCE) do
        at, left = at + 1, left - 1
        local state, of_lane, entry, reason = read_record(place, records[at])
        rank, score = rank + 1, at == #records and not all and call('ZSCORE', P .. place, records[at])
        local wanted = state and wants(entry, of_lane, reason)
        if wanted and visitor.counts then
            meet(state)
        elseif wanted then
            score = score or call('ZSCORE', P .. place, records[at])
            if meet_record(place, records[at], score, state, of_lane, entry, reason) then
                gone, gone_score = gone_score == score and gone + 1 or 1, score
            end
        end
    end
    if all and at == #records then return '' end
    if at == 0 then return from end
    score = score or call('ZSCORE', P .. place, records[at])
    return score .. ':' .. us(rank - count_before(place, score) - (gone_score == score and gone or 0))
end

-- finished:<id>: "<state> <us> <worker> <attempts> <lane>[ <result>]\n<entry>"
local function look_at_ended(id)
    local text = call('GET', P .. 'finished:' .. id) or ''
    local state, at, worker, attempts, of_lane, result, behind = match(text, '^(%S+) (%d+) (%S+) (%d+) (%S+) ?([^\n]*)\n()')
    if not state then return end
    slices.fits(load, #text)
    local entry = sub(text, behind) -- each copy of a large body takes as long as reading it
    if byte(entry) ~= AT then entry = heads.write(min(tonumber(attempts), WHOLE_MOST), 0, 0, entry) end
    if wants(entry, of_lane) then
        meet('finished', of_lane, entry, {since = described.number(tonumber(at)), outcome = state, worker = {name = worker}, result = some(result)})
    end
end

local function look_at_finished()
    look_at_ended(visitor.only.id or '')
    return ''
end

-- Those whose time is over are passed: their list forgets them later.
local function look_at_kept(place, most, from)
    local passed, at = min(tonumber(from) or 0, WHOLE_MOST), 0
    local ids = call('ZRANGE', P .. place, us(passed), us(passed + min(most, NAMES) - 1), 'REV')
    while at < #ids and not is_late(at, FOUND_AT_ONCE) and not slices.is_full(load) do
        at, left = at + 1, left - 1
        look_at_ended(ids[at])
    end
    return #ids > 0 and us(passed + at) or ''
end

-- ---- Names

-- Paused batches, whose jobs may stand aside.
local function name_asides(_, most, from)
    local rest, fields = scan('HSCAN', 'halted', most, from)
    left = left - #fields / 2
    for i = 1, #fields, 2 do
        local batch = match(fields[i], '^b/(.+)$')
        if batch and call('EXISTS', P .. 'aside:' .. batch) == 1 then name_place('aside:' .. batch) end
    end
    return rest
end

-- Names other batches, of which a resume that broke off left some jobs aside.
local function name_other_asides(_, most, from)
    local rest, names = scan('ZSCAN', 'batches', most, from)
    left = left - #names
    for i = 1, #names, 2 do
        local aside = 'aside:' .. names[i]
        if call('EXISTS', P .. aside) == 1 and call('HEXISTS', P .. 'halted', 'b/' .. names[i]) == 0 then name_place(aside) end
    end
    return rest
end

-- Names the place of that kind of one queue.
local function name_of_queue(kind, queue)
    local only = visitor.only
    if kind == 'ring' and not only.type or kind == 'lanes' and not (only.type and only.keys) then return end -- a cursor of another search
    if kind == 'ring' then
        if call('EXISTS', P .. 'ring:' .. queue .. '/' .. only.type) == 1 then name_place('ring:' .. queue .. '/' .. only.type) end
    elseif kind == 'lanes' then
        for _, key in ipairs(only.keys) do
            local name = 'lane:' .. queue .. '/' .. only.type .. '/' .. key
            if call('EXISTS', P .. name) == 1 then name_place(name) end
        end
    else
        name_place(kind .. ':' .. queue)
    end
end

local function name_queues(place, most, from)
    local kind = match(place, '^queues:(.*)$')
    local rest, queues = scan('SSCAN', 'queues', most, from)
    left = left - #queues
    for i = 1, #queues do name_of_queue(kind, queues[i]) end
    return rest
end

local function name_kept(_, most, from)
    local rest, names = scan('HSCAN', 'types', most, from)
    left = left - #names / 2
    for i = 1, #names, 2 do
        if call('EXISTS', P .. 'kept:' .. names[i]) == 1 then name_place('kept:' .. names[i]) end
    end
    return rest
end

local function name_workers(_, most, from)
    local rest, workers = scan('ZSCAN', 'workers', most, from)
    left = left - #workers / 2
    for i = 1, #workers, 2 do name_place('active:' .. workers[i]) end
    return rest
end

local function may_be(...)
    local states = visitor.only.states
    for i = 1, states and #{...} or 0 do
        if states[({...})[i]] then return true end
    end
    return not states
end

-- A place of each queue, or of the one that is asked for.
local function name_for_queues(kind)
    local queue = visitor.only.queue
    if not queue then return name_place('queues:' .. kind) end
    name_of_queue(kind, queue)
    if kind ~= 'queue' then name_of_queue(kind, queue .. '!') end
end

local function name_lanes()
    local only = visitor.only
    if visitor.measures and not (only.type and only.keys) then return name_place('parked') end
    if only.type and only.keys then return name_for_queues('lanes') end
    name_for_queues(only.type and 'ring' or 'wake')
    name_for_queues('sleep')
end

local function name_all()
    local only = visitor.only
    if only.id and may_be('finished') then name_place('finished') end
    if may_be('waiting', 'held') then name_for_queues('queue') end
    if may_be('parked', 'held') then name_lanes() end
    if may_be('aside') and only.batch then name_place('aside:' .. only.batch) end
    if may_be('aside') and not only.batch then
        name_place('halted')
        name_place('asides')
    end
    if may_be('running') then name_place(only.worker and 'active:' .. only.worker or 'workers') end
    if may_be('scheduled', 'retry') then name_place('later') end
    if may_be('dead') then name_place('dead') end
    if only.states and may_be('finished') and not only.id then name_place(only.type and 'kept:' .. only.type or 'kinds') end
end

local function name_places(_, _, from)
    name_all()
    local behind = #named - 2 * (tonumber(from) or #named)
    if behind > 0 then named = {unpack(named, behind + 1)} end
    return ''
end

-- ---- Measuring

local function measure(n)
    looked = looked + n
    return ''
end

local function measure_list(place) return measure(call('LLEN', P .. place)) end
local function measure_leases(place) return measure(max(0, call('HLEN', P .. place) - 1)) end

local function measure_records(place)
    local range = range_of(place)
    return measure(call('ZCOUNT', P .. place, range.from, range.to))
end

local function measure_parked(_, most, from)
    local rest, names = scan('HSCAN', 'types', most, from)
    left = left - #names
    for i = 1, #names, 2 do
        if not visitor.only.type or names[i] == visitor.only.type then
            local counts = call_safe('HMGET', P .. 'stats:' .. names[i], 'parked', 'returned', 'served')
            measure(max(0, counters.number(counts[1]) + counters.number(counts[2]) - counters.number(counts[3])))
        end
    end
    return rest
end

-- ---- Walks

local ways = {[''] = name_places, finished = look_at_finished, queues = name_queues, queue = look_at_list, lane = look_at_list,
              aside = look_at_list, halted = name_asides, asides = name_other_asides, wake = name_gates, wait = name_rings,
              held = name_rings, ring = look_at_ring, sleep = look_at_sleepers, asleep = look_at_sleepers_of_one, workers = name_workers, active = look_at_leases,
              later = look_at_records, dead = look_at_records, kinds = name_kept, kept = look_at_kept, parked = measure_parked}
local measuring = {kept = measure_records, queue = measure_list, lane = measure_list, aside = measure_list, active = measure_leases,
                   later = measure_records, dead = measure_records}

local function way_of(place)
    local kind = match(place, '^%a*')
    return visitor and visitor.measures and measuring[kind] or ways[kind]
end

local function push_place(stack, place, from) stack[#stack + 1], stack[#stack + 2] = place, from end

-- Looks at the place on top; what is left of it and what it names is on the stack then.
local function look_at_top(stack)
    local place, from = stack[#stack - 1], stack[#stack]
    stack[#stack], stack[#stack - 1] = nil, nil
    named, left = {}, left - 1
    local rest = way_of(place)(place, max(1, visitor.moves and left or min(left, STEP)), from)
    if rest ~= '' then push_place(stack, place, rest) end
    for i = #named - 1, 1, -2 do push_place(stack, named[i], named[i + 1]) end
end

function places.walk(stack, who, most)
    visitor, over, left, looked, held, load, late_us = who, false, most, 0, {}, slices.deep_load(), LATE_US
    repeat look_at_top(stack) until over or #stack == 0 or left < 1 or slices.is_full(load) or is_late(1, 1)
end

function places.looked() return looked end

function places.bytes() return load.all - load.left end

-- How many of the places that the first one names are at the bottom of a stack, untouched.
local function count_untouched(stack)
    named = {}
    name_all()
    local count = 0
    while stack[2 * count + 1] and stack[2 * count + 2] == '' and stack[2 * count + 1] == named[#named - 1 - 2 * count] do count = count + 1 end
    return count
end

-- Those at its bottom are named by the first place.
local function shortened(stack)
    local count = count_untouched(stack)
    if count < 2 then return stack end
    local short = {'', us(count)}
    for i = 2 * count + 1, #stack do short[#short + 1] = stack[i] end
    return short
end

function places.words(full)
    local list, stack = {}, shortened(full)
    for i = #stack - 1, 1, -2 do
        list[#list + 1] = stack[i]
        list[#list + 1] = stack[i + 1]
    end
    return list[1] and list
end

local LONE = {[''] = true, finished = true, halted = true, asides = true, workers = true, later = true, dead = true, kinds = true, parked = true}
local OF_QUEUES = {queue = true, wake = true, sleep = true, ring = true, lanes = true}
local CURSOR_MOST, PASSED_MOST = 19, 15 -- digits

local function is_from(place, from)
    if from == '' or place ~= 'later' and place ~= 'dead' then return find(from, '^%d*%+?%d*$') and #match(from, '^%d*') <= CURSOR_MOST end
    local score, passed = match(from, '^([%w.+-]+):(%d+)$')
    score = tonumber(score)
    return score and score == score and #passed <= PASSED_MOST
end

-- True when a walk could have come to there. Both may come from anybody.
local function is_place(place, from)
    local kind, name = match(place, '^(%a*):?(.*)$')
    if not ways[kind] or (LONE[kind] and place ~= kind) or (not LONE[kind] and name == '') then return false end
    return (kind ~= 'queues' or OF_QUEUES[name]) and is_from(place, from)
end

function places.stack(words, first)
    local stack, count = {}, #words - first + 1
    if count == 0 then return {'', ''} end
    if count % 2 == 1 or count > WORDS_MOST then return nil end
    for i = #words - 1, first, -2 do
        if not is_place(words[i], words[i + 1]) then return nil end
        push_place(stack, words[i], words[i + 1])
    end
    return stack
end

return places
