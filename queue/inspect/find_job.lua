-- find_job: looks for a job by its id, in as many places as one page allows; changes nothing.
--
-- The caller keeps a stack of places, each with how far it has been read ('' at first). A call looks at those on top and returns
-- what takes their place. Places that another names are looked at before the rest of it.
-- Jobs move while one looks, mostly from queues through lanes to leases: the places come in that order. Lists are read from
-- their tails, so that none is passed over while others leave at the head.
--
-- KEYS[1] prefix
-- ARGV: now, id, most (entries of one page, 1 to 1000), then the top of the stack: 1 to 100 times place, from
--       place: '' (names the others), finished, queues:<kind> (names <kind>:<queue> of all queues), queue:<queue>, wake:<queue> (names
--              the gates at which types wait), wait:<queue>/<gate> and held:<queue> (name the rings of their types),
--              ring:<queue>/<type> and sleep:<queue> (the last jobs of their lanes; names lanes that have more), lane:<lane>,
--              aside:<batch>, asides (names those of batches that are not paused), active:<worker>, later, dead
-- role: viewer
-- reply: [ now, bytes that were read, [place, from, ...] which take the place of those that were given, found ]; found: [], or
--        [ state, lane, entry, a, b, text, host, pid, word, mark, paused, halted, held ]
--        waiting, parked, aside: a jobs are before it, of b; text: the place. The lane of one that waits has neither type nor key
--        running: its slot and the end of its lease, us; text: the worker; word: the token
--        scheduled, retry: when it is due, us; text: the header of its record
--        dead: when it died, us; text: the reason. finished: when, us; text: the worker; word: as what
--        mark: what `cancelled` says of its id; paused: since when its queue is, us; halted: what `halted` says of its batch; or ''
--        held: of one that waits or is parked, whether its type is held there (0/1)
--
-- writes: nothing
-- uses: body lease sign slices

local LAST = 8  -- jobs of a lane that are looked at with others
local SHARE = 8 -- a lane takes Redis as long as so many of its jobs
local MOST_PLACES = 100

local id, quoted, places -- of one call
local left, load         -- entries that it may still look at, a place counts as one; bytes that it may still read

local function is_it(entry)
    left = left - 1
    if not find(entry, quoted, 1, true) then return false end
    local _, at = lease.head_read(entry)
    return body.id(entry, at) == id
end

local function text_of(key, field)
    local text = call_safe('HGET', P .. key, field)
    return type(text) == 'string' and text or ''
end

local function found(state, lane, entry, a, b, text, host, pid, word)
    local _, _, _, _, attrs = lease.entry_read(entry)
    return {state, lane, entry, us(a), us(b), text, host or '', us(pid or 0), word or '', text_of('cancelled', id),
            text_of('halted', 'q/' .. lane:match('^[^/!]*')), text_of('halted', 'b/' .. (lease.attr(attrs, 'b') or '')), 0}
end

-- The same of one that waits for a worker, in a queue or lane.
local function found_in_line(state, of_lane, entry, name, ...)
    local row = found(state, of_lane, entry, ...)
    if name and type(call_safe('ZSCORE', P .. 'held:' .. of_lane:match('^[^/]*'), name)) == 'string' then row[#row] = 1 end
    return row
end

-- It has so many entries of a list behind it.
local function in_list(place, behind)
    local kind, name = place:match('^(%a+):(.*)$')
    local entry, length = call('LINDEX', P .. place, us(-behind - 1)), call('LLEN', P .. place)
    if kind == 'aside' then
        local from, aside = entry:match('^(%S*) ?\n(.*)$')
        return found('aside', from or '//', aside or entry, length - behind - 1, length, place)
    end
    if kind == 'lane' then
        local _, of_type = lease.lane_parts(name)
        return found_in_line('parked', name, entry, of_type, length - behind - 1, length, place)
    end
    entry = sign.read(entry)
    return found_in_line('waiting', name .. '//', entry, body.type(entry), length - behind - 1, length, place)
end

-- The entry in what a list of that kind holds.
local readers = {queue = sign.read}
function readers.lane(entry) return entry end
function readers.aside(record) return record:match('^[^\n]*\n(.*)$') or record end

-- from: how many entries at the tail have been seen.
local function look_at_list(place, most, from)
    from = tonumber(from) or 0
    local read = readers[place:match('^%a*')]
    local entries, all = slices.last(P .. place, most, load, from)
    for i = 1, #entries do
        if is_it(read(entries[i])) then return '', in_list(place, from + i - 1) end
    end
    return all and '' or us(from + #entries)
end

local function look_at_lane(name)
    local entries, all = slices.last(P .. 'lane:' .. name, LAST, load)
    left = left - 1
    for i = 1, #entries do
        if is_it(entries[i]) then return in_list('lane:' .. name, i - 1) end
    end
    if not all then places[#places + 1] = 'lane:' .. name end
end

-- One page of a zset or hash: the next cursor, and its elements with what belongs to them. Of bodies: as far as they fit.
local function scan_bodies(command, key, most, from)
    local elements, cursor = slices.scan(command, P .. key, from == '' and '0' or from, most, load)
    return cursor ~= '0' and cursor or '', elements
end

local function scan(command, key, most, from)
    local page = call(command, P .. key, from == '' and '0' or from, 'COUNT', us(most))
    return page[1] ~= '0' and page[1] or '', page[2]
end

-- A type whose ring is not empty waits at one gate, or is held.
local function name_gates(place, most, from)
    local queue = place:match('^wake:(.*)$')
    local rest, gates = scan('ZSCAN', place, most, from)
    left = left - #gates / 2
    if from == '' then places[1] = 'held:' .. queue end
    for i = 1, #gates, 2 do
        if gates[i] ~= '*' then places[#places + 1] = 'wait:' .. queue .. '/' .. gates[i] end
    end
    return rest
end

local function name_rings(place, most, from)
    local queue = place:match('^%a+:([^/]*)')
    local rest, kinds = scan('ZSCAN', place, most, from)
    left = left - #kinds / 2
    for i = 1, #kinds, 2 do places[#places + 1] = 'ring:' .. queue .. '/' .. kinds[i] end
    return rest
end

local function look_at_ring(place, most, from)
    local path = place:match('^ring:(.*)$') .. '/'
    local rest, keys = scan('ZSCAN', place, ceil(most / SHARE), from)
    for i = 1, #keys, 2 do
        local job = look_at_lane(path .. keys[i])
        if job then return '', job end
    end
    return rest
end

local function look_at_sleepers(place, most, from)
    local queue = place:match('^sleep:(.*)$')
    local rest, gates = scan('ZSCAN', place, ceil(most / SHARE), from)
    for i = 1, #gates, 2 do
        for _, node in ipairs(call('ZRANGE', P .. 'wait:' .. queue .. '/' .. gates[i], '0', '-1')) do
            local job = look_at_lane(queue .. '/' .. node)
            if job then return '', job end
        end
    end
    return rest
end

local function running(worker, token, entry)
    local ok, info = pcall(json_read, call('HGET', P .. 'active:' .. worker, '@') or '')
    info = ok and type(info) == 'table' and info or {}
    local deadline = tonumber(call('ZSCORE', P .. 'workers', worker) or 0)
    return found('running', lease.lane_of(token) or '//', entry, lease.slot_of(token), deadline, worker,
                 type(info.host) == 'string' and info.host, is_whole(tonumber(info.pid)) and tonumber(info.pid), token)
end

local function look_at_leases(place, most, from)
    local rest, leases = scan_bodies('HSCAN', place, most, from)
    for i = 1, #leases, 2 do
        if leases[i] ~= '@' and is_it(leases[i + 1]) then
            return '', running(place:match('^active:(.*)$'), leases[i], leases[i + 1])
        end
    end
    return rest
end

-- What a record of later or dead says of the job that it keeps.
local function recorded(place, record, score, entry)
    if place == 'dead' then
        local lane, reason = record:match('^%S+ (%S*) ?([^\n]*)')
        return found('dead', lane or '//', entry, score, 0, reason or '')
    end
    local header = record:match('^[^\n]*')
    local queue, kind = header:match('^q %S+ (%S+) (%S+)$')
    if queue then return found('scheduled', queue .. '/' .. kind .. '/', entry, score, 0, header) end
    return found('retry', header:match('^l %S+ (.+)$') or '//', entry, score, 0, header)
end

-- finished:<id>: "<state> <us> <worker> <attempts> <lane>\n<body>"
local function look_at_finished()
    local text = call('GET', P .. 'finished:' .. id) or ''
    local state, at, worker, attempts, of_lane, job = text:match('^(%S+) (%d+) (%S+) (%d+) (%S+)\n(.*)$')
    if not state then return '' end
    slices.fits(load, #job)
    return '', found('finished', of_lane, lease.entry_write(tonumber(attempts), 0, 0, job), tonumber(at), 0, worker, '', 0, state)
end

local function look_at_records(place, most, from)
    local rest, records = scan_bodies('ZSCAN', place, most, from)
    for i = 1, #records, 2 do
        local entry = records[i]:match('^[^\n]*\n(.*)$') or ''
        if is_it(entry) then return '', recorded(place, records[i], tonumber(records[i + 1]), entry) end
    end
    return rest
end

-- Paused batches, whose jobs may stand aside.
local function name_asides()
    for _, field in ipairs(call('HKEYS', P .. 'halted')) do
        local batch = field:match('^b/(.+)$')
        if batch and call('EXISTS', P .. 'aside:' .. batch) == 1 then places[#places + 1] = 'aside:' .. batch end
    end
end

-- The others, from which a resume that broke off left some aside.
local function name_other_asides(_, most, from)
    local rest, names = scan('ZSCAN', 'batches', most, from)
    left = left - #names
    for i = 1, #names, 2 do
        local aside = 'aside:' .. names[i]
        if call('EXISTS', P .. aside) == 1 and call('HEXISTS', P .. 'halted', 'b/' .. names[i]) == 0 then
            places[#places + 1] = aside
        end
    end
    return rest
end

local function name_queues(place, most, from)
    local kind = place:match('^queues:(.*)$') .. ':'
    local rest, queues = scan('SSCAN', 'queues', most, from)
    left = left - #queues
    for i = 1, #queues do places[i] = kind .. queues[i] end
    return rest
end

local function name_places()
    places = {'finished', 'queues:queue', 'queues:wake', 'queues:sleep'}
    name_asides()
    places[#places + 1] = 'asides'
    for _, worker in ipairs(call('ZRANGE', P .. 'workers', '0', '-1')) do places[#places + 1] = 'active:' .. worker end
    places[#places + 1] = 'later'
    places[#places + 1] = 'dead'
    return ''
end

local ways = {[''] = name_places, finished = look_at_finished, queues = name_queues, queue = look_at_list, lane = look_at_list,
              aside = look_at_list, asides = name_other_asides, wake = name_gates, wait = name_rings, held = name_rings,
              ring = look_at_ring, sleep = look_at_sleepers, active = look_at_leases, later = look_at_records, dead = look_at_records}

local function way_of(place) return ways[place:match('^%a*')] end

local function push_place(stack, place, from) stack[#stack + 1], stack[#stack + 2] = place, from end

-- Looks at the place on top; what is left of it and what it names is on the stack then. Returns the job, if it is there.
local function look_at_top(stack)
    local place, from = stack[#stack - 1], stack[#stack]
    stack[#stack], stack[#stack - 1] = nil, nil
    places, left = {}, left - 1
    local rest, job = way_of(place)(place, max(1, left), from)
    if rest ~= '' then push_place(stack, place, rest) end
    for i = #places, 1, -1 do push_place(stack, places[i], '') end
    return job
end

-- The stack with its top first.
local function turned(stack)
    local list = {}
    for i = #stack - 1, 1, -2 do
        list[#list + 1] = stack[i]
        list[#list + 1] = stack[i + 1]
    end
    return list
end

local function find_job(ARGV)
    local most, count = tonumber(ARGV[3]), #ARGV - 3
    if not (ARGV[2] and is_name(ARGV[2]) and is_whole(most, 1)) or most > 1000 or count < 2 or count > 2 * MOST_PLACES or count % 2 ~= 0 then
        return refuse('find_job: wants now, id, most from 1 to 1000, place, from, ...')
    end
    local stack, job = {}, nil
    for i = #ARGV - 1, 4, -2 do
        if not way_of(ARGV[i]) then return refuse('find_job: wants a place') end
        push_place(stack, ARGV[i], ARGV[i + 1])
    end
    id, quoted, load, left = ARGV[2], '"' .. ARGV[2] .. '"', slices.deep_load(), most
    repeat job = look_at_top(stack) until job or #stack == 0 or left < 1 or slices.is_full(load)
    return {us(now), us(load.all - load.left), job and {} or turned(stack), job or {}}
end

return find_job
