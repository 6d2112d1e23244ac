-- find_job: looks for a job by its id, in as many places as one page allows; changes nothing.
--
-- A search keeps a stack of places, each with how far it has been read ('' at first). A page looks at those on top, and names what
-- takes their place. Places that another names are looked at before the rest of it.
-- Jobs move while one looks, mostly from queues through lanes to leases: the places come in that order. Lists are read from
-- their tails, so that none is passed over while others leave at the head.
--
-- KEYS[1] prefix
-- ARGV: now, id, most (entries of one page, 1 to 1000), then what `next` of the page before says: the stack, its top first, of
--       place: '' (the first: names the others), finished, queues:<kind> (names <kind>:<queue> of all queues), queue:<queue>,
--              wake:<queue> (names the gates at which types wait), wait:<queue>/<gate> and held:<queue> (name the rings of their types),
--              ring:<queue>/<type> and sleep:<queue> (the last jobs of their lanes; names lanes that have more), lane:<lane>,
--              halted (names aside:<batch> of batches that are paused), asides (the same of others), aside:<batch>, workers (names
--              active:<worker>), active:<worker>, later, dead, aways (names away:<p> where jobs go to other partitions), away:<p>
--       from:  how far it has been read
-- role: viewer
-- reply: JSON: {"now": "us", "bytes": that were read, "next": [place, from, ...], "job": {...}}; "next" is not there when the job is
--        found or all has been looked at. job: times are "us"; what does not apply is not there:
--        "state", "queue", "type", "key", "alone", "entry", "body_at": where the body begins in it, "attempts", "interrupted",
--        "throttled", "batch", "unique", "unique_until": "start" or "end", "failed_at", "failure", "cancelled_at": it was cancelled, and
--        nobody who can end it has met it; "queue_paused_since" (-1: unknown), "batch_paused_since", "batch_cancelled_at"; and
--        of waiting, parked, held, aside, moving (to another partition): "place", "of": of so many in "list"; held: waiting or parked, and no worker that looked can
--        run its type
--        of running: "worker": {"name", "host", "pid"}, "token", "since": its slot, "lease_until"
--        of scheduled, retry: "start", "header": of its record
--        of dead: "since", "reason"; of finished: "since", "outcome", "worker": {"name"}
--
-- writes: nothing
-- uses: away body lease sign slices

local LAST = 8  -- jobs of a lane that are looked at with others
local SHARE = 8 -- a lane takes Redis as long as so many of its jobs
local NAMES = 100 -- that a place gives at once
local WORDS_MOST = 20000

local id, quoted, places -- of one call
local left, load         -- entries that it may still look at, a place counts as one; bytes that it may still read

local function is_it(entry)
    left = left - 1
    if not find(entry, quoted, 1, true) then return false end
    local _, at = lease.head_read(entry)
    return body.id(entry, at) == id
end

-- A number that may stand anywhere in Redis, as text.
local function number(x) return us(max(0, min(x or 0, WHOLE_MOST))) end

local function some(text) return text ~= '' and text or nil end

local function text_of(key, field)
    local text = call_safe('HGET', P .. key, field)
    return type(text) == 'string' and text or ''
end

-- When it was cancelled: of a running job its entry says so, of others a mark.
local function cancelled_at(state, attrs)
    if state == 'running' then return match(lease.attr(attrs, 'c') or '', '^%d+') end
    local mark = text_of('cancelled', id)
    return match(mark, '^waiting (%d+)') or match(mark, '^asked (%d+)')
end

local function found(state, of_lane, entry, more)
    local job, attempts, interrupted, throttled, _, attrs = more, lease.entry_read(entry)
    local queue, name, key = match(of_lane, '^([^/]*)/?([^/]*)/?(.*)$')
    local failed, failure = lease.failure(attrs)
    local until_end, until_start = lease.attr(attrs, 'u'), lease.attr(attrs, 'w')
    local _, at = lease.head_read(entry)
    queue = lease.usual_queue(queue)
    job.state, job.entry, job.body_at = state, entry, at
    job.queue, job.type, job.key, job.alone = some(queue), some(name), some(key), lease.is_alone(of_lane)
    job.attempts, job.interrupted, job.throttled = number(attempts), number(interrupted), number(throttled)
    job.batch, job.unique = lease.attr(attrs, 'b'), until_end or until_start
    job.unique_until = until_start and 'start' or until_end and 'end'
    job.failed_at, job.failure = failed and number(failed), failure
    job.cancelled_at = cancelled_at(state, attrs)
    local paused, halted = text_of('halted', 'q/' .. queue), text_of('halted', 'b/' .. (job.batch or ''))
    job.queue_paused_since = some(paused) and (match(paused, '^%d+$') or '-1')
    job.batch_paused_since, job.batch_cancelled_at = match(halted, '^paused (%d+)'), match(halted, '^cancelled (%d+)')
    return job
end

-- The same of one that waits for a worker, in a queue or lane.
local function found_in_line(state, of_lane, entry, name, more)
    local held = name and type(call_safe('ZSCORE', P .. 'held:' .. of_lane:match('^[^/]*'), name)) == 'string'
    return found(held and 'held' or state, of_lane, entry, more)
end

-- It has so many entries of a list behind it.
local function in_list(place, behind)
    local kind, name = place:match('^(%a+):(.*)$')
    local entry, length = call('LINDEX', P .. place, us(-behind - 1)), call('LLEN', P .. place)
    local more = {list = place, place = us(length - behind), of = us(length)}
    if kind == 'aside' then
        local from, aside = entry:match('^(%S*) ?\n(.*)$')
        return found('aside', from or '//', aside or entry, more)
    end
    if kind == 'away' then
        local _, queue, name_there, at = away.read(entry)
        return found('moving', (queue or '') .. '/' .. (name_there or '') .. '/', sub(entry, at or 1), more)
    end
    if kind == 'lane' then
        local _, of_type = lease.lane_parts(name)
        return found_in_line('parked', name, entry, of_type, more)
    end
    entry = sign.read(entry)
    return found_in_line('waiting', name .. '//', entry, body.type(entry), more)
end

-- The entry in what a list of that kind holds.
local readers = {queue = sign.read}
function readers.lane(entry) return entry end
function readers.aside(record) return record:match('^[^\n]*\n(.*)$') or record end
readers.away = readers.aside

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
    local page = call(command, P .. key, from == '' and '0' or from, 'COUNT', us(min(most, NAMES)))
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
    local pid, slot = tonumber(info.pid), lease.slot_of(token)
    return found('running', lease.lane_of(token) or '//', entry, {
        worker = {name = worker, host = type(info.host) == 'string' and some(info.host) or nil, pid = is_whole(pid) and us(pid) or '0'},
        token = token, since = slot > 0 and number(slot) or nil, lease_until = number(tonumber(call('ZSCORE', P .. 'workers', worker)))})
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
        local of_lane, reason = record:match('^%S+ (%S*) ?([^\n]*)')
        return found('dead', of_lane or '//', entry, {since = number(score), reason = reason and some(reason)})
    end
    local header = record:match('^[^\n]*')
    local queue, kind = header:match('^q %S+ (%S+) (%S+)$')
    local more = {start = number(score), header = header}
    if queue then return found('scheduled', queue .. '/' .. kind .. '/', entry, more) end
    return found('retry', header:match('^l %S+ (.+)$') or '//', entry, more)
end

-- finished:<id>: "<state> <us> <worker> <attempts> <lane>\n<body>"
local function look_at_finished()
    local text = call('GET', P .. 'finished:' .. id) or ''
    local state, at, worker, attempts, of_lane, job = text:match('^(%S+) (%d+) (%S+) (%d+) (%S+)\n(.*)$')
    if not state then return '' end
    slices.fits(load, #job)
    local entry = lease.entry_write(min(tonumber(attempts), WHOLE_MOST), 0, 0, job)
    return '', found('finished', of_lane, entry, {since = number(tonumber(at)), outcome = state, worker = {name = worker}})
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
local function name_asides(_, most, from)
    local rest, fields = scan('HSCAN', 'halted', most, from)
    left = left - #fields / 2
    for i = 1, #fields, 2 do
        local batch = fields[i]:match('^b/(.+)$')
        if batch and call('EXISTS', P .. 'aside:' .. batch) == 1 then places[#places + 1] = 'aside:' .. batch end
    end
    return rest
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

local function name_workers(_, most, from)
    local rest, workers = scan('ZSCAN', 'workers', most, from)
    left = left - #workers / 2
    for i = 1, #workers, 2 do places[#places + 1] = 'active:' .. workers[i] end
    return rest
end

local function name_aways()
    for i, p in ipairs(away.waiting()) do places[i] = 'away:' .. p end
    return ''
end

local function name_places()
    places = {'finished', 'queues:queue', 'queues:wake', 'queues:sleep', 'halted', 'asides', 'workers', 'later', 'dead', 'aways'}
    return ''
end

local ways = {[''] = name_places, finished = look_at_finished, queues = name_queues, queue = look_at_list, lane = look_at_list,
              aside = look_at_list, halted = name_asides, asides = name_other_asides, wake = name_gates, wait = name_rings,
              held = name_rings, ring = look_at_ring, sleep = look_at_sleepers, workers = name_workers, active = look_at_leases,
              later = look_at_records, dead = look_at_records, aways = name_aways, away = look_at_list}

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

-- The stack with its top first; nil: nothing is left.
local function turned(stack)
    local list = {}
    for i = #stack - 1, 1, -2 do
        list[#list + 1] = stack[i]
        list[#list + 1] = stack[i + 1]
    end
    return list[1] and list
end

-- The stack of the words from the fourth on; nil: they are wrong.
local function read_stack(words)
    local stack = {}
    if #words == 3 then return {'', ''} end
    if #words % 2 == 0 or #words > WORDS_MOST then return nil end
    for i = #words - 1, 4, -2 do
        if not way_of(words[i]) then return nil end
        push_place(stack, words[i], words[i + 1])
    end
    return stack
end

local function find_job(ARGV)
    local most, stack, job = tonumber(ARGV[3]), read_stack(ARGV), nil
    if not (ARGV[2] and is_name(ARGV[2]) and is_whole(most, 1) and stack) or most > 1000 then
        return refuse('find_job: wants now, id, most from 1 to 1000, place, from, ...')
    end
    id, quoted, load, left = ARGV[2], '"' .. ARGV[2] .. '"', slices.deep_load(), most
    repeat job = look_at_top(stack) until job or #stack == 0 or left < 1 or slices.is_full(load)
    return answer{now = us(now), bytes = load.all - load.left, next = not job and turned(stack) or nil, job = job}
end

return find_job
