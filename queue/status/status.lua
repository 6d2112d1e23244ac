-- status: what there is, in numbers, a page a call; touches nothing.
--
-- ARGV: now [, what is walked (halted, then queues, then workers; or types), cursor ('0' at first): the place where the last call ended, bytes of jobs that may still be read, how many values a scan has
--       found that were not taken, these, ... [, queue, rank: of held types, ...]]
-- role: viewer
-- reply: JSON: {"now": "us", "claimed": "us, when a claim last leased something or took the duty (see data_loss); '': never", "dead": n, "dead_bytes": text (-1: not all counted yet), "later": n,
--        "queues": {queue: length}, "stopped": {queue that a key of another kind stops: what is wrong with that}, "paused": {queue: as reasons.pause has it; since -1: unknown},
--        "unread": {queue that is paused: true, as jobs stand there that were not looked at},
--        "asleep": {queue: gates at which lanes sleep}, "held": {type: true, ...},
--        "oldest": {queue: when its first job was enqueued, in 10 ms}, "first": {type: the same of its jobs that were looked at},
--        "seen": {type: {queue where jobs of it are among the first: {"jobs", "named", "slots", "least", "most": of these, of those that name their
--        cost, and what these cost; "head": of the first, if it names it}; how many where none does}},
--        "lanes": {type that has jobs in lanes: as backlog has its row},
--        "types": {type: {"counts": what stands in stats:, "cost", "costs": all of it, where it has names, as cost.lua writes it, "use": [limit, ...], "keyless": as rates.keyless tells it, "own_costs": claims
--        noted that jobs name their cost, "in_pause": lanes of it may stand in a queue that is paused}},
--        "paused_types": {type: as reasons.pause has it}, "reasons": {limit: why somebody has paused it}, on the first page,
--        "paused_keys": {limit/key: as key_pauses.rows tells it, the first of them}, "paused_key_count": all of them, on the first page,
--        "workers": {id: {"info": place in raw, "types": place in raw of those that it names; absent: they stand in info, "until": "us", "running": n, "order": as orders has it, "heard": true, where it is}}, "next": [what, cursor, ...], the place to go on from; absent: that was all},
--        raw: what workers say of themselves
--        Times are text: JSON numbers here keep 14 digits. What is 0, false or empty is left out.
--        A member may come twice, the later one counts
--
-- writes: nothing
-- uses: backlog blocked_queues body data_loss dead_bytes key_pauses lane oldest orders paused rates reasons registry sign slices time_budget types

local LOOKED_AT = 100    -- jobs of each queue,
local LOOKED_AT_ALL = 3000 -- and of all queues, about; but so many of each:
local LOOKED_AT_LEAST = 3  -- all as far as slices.BYTES go for all queues
local PAGE_BYTES = 65536 -- of these in one call
local PAUSED_MOST = 20   -- paused queues whose lanes are looked at for each type that has any; more: it may be in one
local PAUSED_KEYS = 50   -- named; the others are counted
local HELD_MOST = 1000   -- held types named by one call, about

local COUNTS = {halted = 100, queues = 50, types = 250, workers = 10} -- asked of a scan at most; it may find some more
local LOOKS = {halted = 5, queues = 5, types = 2, workers = 5} -- what one of them costs, at least
local VALUES = {halted = 2, queues = 1, types = 2, workers = 2} -- of a scan that are one thing

local halted -- in this call: the paused queues in which lanes may stand, see halted_queues; nil: not asked yet
local each   -- and how many jobs of each queue are looked at; nil: not asked yet

-- ---- Queues

local function jobs_of_each()
    each = each or max(LOOKED_AT_LEAST, min(LOOKED_AT, floor(LOOKED_AT_ALL / call('SCARD', P .. 'queues'))))
    return each
end

-- The type of a job in a queue, as far as it is cheap to find; nil: it is not.
local function type_in(entry)
    return match(entry, byte(entry) == 64 and body.STAMPED_TYPE or body.TYPE) or match(entry, '"type"%s*:%s*"([%w_.-]+)"')
end

-- Adds what a job costs to what was seen of its type in this queue.
local function note_cost(place, entry)
    local cost = body.cost(entry)
    place.jobs = place.jobs + 1
    if not cost then return end
    if place.jobs == 1 then place.head = us(cost) end
    place.named, place.slots = place.named + 1, place.slots + cost
    place.least, place.most = min(place.least or cost, cost), max(place.most or cost, cost)
end

-- Looks at the first jobs of a queue; returns whether there are more behind them.
local function look(reply, queue, length, load)
    local places, entries = {}, length > 0 and slices.read('LRANGE', P .. 'queue:' .. queue, 0, jobs_of_each(), load) or {}
    if length > 0 and not entries[1] then entries[1] = oldest.first_of('queue:' .. queue) end
    for i, entry in ipairs(entries) do
        local name = type_in(entry)
        local at = (i == 1 or name and not places[name]) and oldest.said_by(sign.read(entry))
        if i == 1 then reply.oldest[queue] = at or nil end
        if name then
            if not places[name] then
                places[name] = {jobs = 0, named = 0, slots = 0}
                oldest.note(reply.first, name, at)
            end
            note_cost(places[name], entry)
        end
    end
    for name, place in pairs(places) do
        reply.seen[name] = reply.seen[name] or {}
        reply.seen[name][queue] = place.named > 0 and place or place.jobs
    end
    return #entries < length
end

-- Names the types that are held in a queue, from a rank on; returns them. What is left is for the next call.
local function name_held(reply, queue, rank, place)
    local most = max(0, HELD_MOST - reply.named)
    local names = call('ZRANGE', P .. 'held:' .. queue, us(rank), us(rank + most))
    for i = 1, min(#names, most) do reply.held[names[i]] = true end
    reply.named = reply.named + #names
    time_budget.spend(#names / 10)
    if #names > most then place[#place + 1], place[#place + 2] = queue, us(rank + most) end
    return names
end

-- Notes what waits in lanes of a queue.
local function note_lanes(reply, queue, place)
    local asleep = call('ZCARD', P .. 'sleep:' .. queue)
    time_budget.spend(20)
    if asleep > 0 then reply.asleep[queue] = asleep end
    oldest.note_queue(reply.first, queue, name_held(reply, queue, 0, place), asleep)
end

local function read_queue(reply, queue, load, place)
    local length, since = call('LLEN', P .. 'queue:' .. queue), reply.any_paused and paused.since(queue) or ''
    local before = load.n
    local more = look(reply, queue, length, load)
    time_budget.spend(4 + load.n - before)
    reply.queues[queue], reply.stopped[queue] = length, blocked_queues.by(queue)
    if since ~= '' then reply.paused[queue], reply.unread[queue] = reasons.pause('queue', queue, nil, since), more or nil end
    if call('EXISTS', P .. 'sleep:' .. queue, P .. 'held:' .. queue, P .. 'wake:' .. queue) > 0 then note_lanes(reply, queue, place) end
end

-- A queue that cannot be read, as a key of another kind stands there, keeps nobody from what else there is.
local function queue_row(reply, queue, load, place)
    local ok, failure = pcall(read_queue, reply, queue, load, place)
    if ok then return end
    local wrong = blocked_queues.wrong(queue) or error(failure, 0) -- as Redis said it
    reply.queues[queue], reply.stopped[queue] = reply.queues[queue] or 0, wrong
end

-- ---- Types

-- The paused queues in which lanes may stand, a list; true: any type that is parked may stand in one.
local function halted_queues()
    local page, queues = call('HSCAN', P .. 'halted', '0', 'MATCH', 'q/*', 'COUNT', us(COUNTS.halted)), {}
    for i = 1, #page[2], 2 do queues[#queues + 1] = sub(page[2][i], 3) end
    if page[1] ~= '0' or #queues > PAUSED_MOST then return true end
    for _, queue in ipairs(queues) do
        if call('EXISTS', P .. 'sleep:' .. queue) == 1 then return true end
    end
    return queues
end

local function in_pause(name)
    halted = halted or halted_queues()
    local queues = halted
    if queues == true or #queues == 0 then return queues == true end
    local rings = {}
    for i, queue in ipairs(queues) do rings[i] = P .. 'ring:' .. queue .. '/' .. name end
    time_budget.spend(1 + #rings / 4)
    return call('EXISTS', unpack(rings)) > 0
end

-- Returns what is counted of a type, as text that stands there: who asks knows which counters there are. And how many they are.
local function counts_of(name)
    local list, counts = call('HGETALL', P .. 'stats:' .. name), {}
    for i = 1, #list, 2 do counts[list[i]] = list[i + 1] end
    return counts, #list / 2
end

-- Who asks counts what is in lanes; here that matters only where more is looked at for such a type: claims have noted something of one that has keys
-- or costs.
local function type_row(reply, name, text)
    local counts, n = counts_of(name)
    local parked = (reply.looks_at_lanes or text ~= '') and lane.parked_by(counts.parked, counts.returned, counts.served) or 0
    local row = {counts = counts, keyless = counts.keyless and rates.keyless(name) or nil}
    time_budget.spend(1 + n / 6 + (counts.keyless and 4 or 0)) -- JSON takes as long again
    if parked > 0 then
        time_budget.spend(1 + oldest.note_type(reply.first, name))
        reply.lanes[name] = backlog.of(name, text, reply.any_paused)
        row.in_pause = in_pause(name) or nil
    end
    if text == '' then return row end
    local t = types.parse(name, text)
    if t.pause then reply.paused_types[name] = reasons.pause('type', name, t.pause) end
    time_budget.spend(1)
    row.costs = t.costs and t.costs.text
    row.cost, row.own_costs, row.use = t.cost > 1 and us(t.cost) or nil, t.own_costs or nil, t.use[1] and t.use or nil
    return row
end

-- ---- The pages

local take = {}

-- Queues that are paused may be there before their first job.
function take.halted(field, _, reply, load, place)
    local queue = match(field, '^q/(.+)$')
    if is_name(queue) then queue_row(reply, queue, load, place) end
end

function take.queues(queue, _, reply, load, place)
    if is_name(queue) then queue_row(reply, queue, load, place) end
end

function take.types(name, text, reply)
    if is_name(name) then reply.types[name] = type_row(reply, name, text) end
end

-- Where what a worker says of itself stands in raw. Its types, which may be thousands, stand apart: many workers say the same ones.
local function split_said(reply, said)
    local raw, at = reply.raw, find(said, ',"types":[', 1, true)
    time_budget.spend(3 + #said / 1024)
    if not at or sub(said, -2) ~= ']}' then
        raw[#raw + 1] = said
        return #raw - 1
    end
    local names = sub(said, at + 9, -2)
    if not reply.lists[names] then
        raw[#raw + 1] = names
        reply.lists[names] = #raw - 1
    end
    raw[#raw + 1] = sub(said, 1, at - 1) .. '}'
    return #raw - 1, reply.lists[names]
end

function take.workers(id, till, reply)
    if not is_name(id) then return end
    local said = call('HGET', P .. 'active:' .. id, '@') or ''
    local instance = registry.instance(said)
    local order, ordered = orders.read(instance)
    local info, names = split_said(reply, said)
    reply.workers[id] = {info = info, types = names, ['until'] = us(tonumber(till)), running = max(0, call('HLEN', P .. 'active:' .. id) - 1),
                         order = order ~= '' and order or nil, ordered = ordered,
                         heard = order ~= '' and orders.is_heard(instance) or nil}
end

-- No more than this call can take: what it leaves goes to the client and back.
local function scan(what, cursor)
    local count = us(max(1, min(COUNTS[what], ceil(time_budget.left() / LOOKS[what]))))
    if what == 'halted' then return unpack(call('HSCAN', P .. 'halted', cursor, 'MATCH', 'q/*', 'COUNT', count)) end
    if what == 'queues' then return unpack(call('SSCAN', P .. 'queues', cursor, 'COUNT', count)) end
    if what == 'types' then return unpack(call('HSCAN', P .. 'types', cursor, 'COUNT', count)) end
    return unpack(call('ZSCAN', P .. 'workers', cursor, 'COUNT', count))
end

local after = {halted = 'queues', queues = 'workers'} -- types are walked for themselves

local function new_reply()
    return {now = us(now), claimed = data_loss.claimed(), dead = call('ZCARD', P .. 'dead'), dead_bytes = us(dead_bytes.read() or -1),
            later = call('ZCARD', P .. 'later'), queues = {}, stopped = {}, oldest = {}, first = {}, paused = {}, types = {}, paused_types = {}, unread = {}, asleep = {}, held = {}, seen = {}, lanes = {},
            workers = {}, lists = {}, raw = {}, named = 0, any_paused = call('HLEN', P .. 'halted') > 0}
end

-- The queues whose held types are not all named yet.
local function name_more(reply, ARGV, from, place)
    for i = from, #ARGV - 1, 2 do name_held(reply, ARGV[i], tonumber(ARGV[i + 1]) or 0, place) end
end

-- Takes what one call may. found: what the last call has left. Returns the place to go on from, and what is left; nil: that was all.
local function take_page(reply, what, cursor, found, load, more_held)
    repeat
        if #found == 0 then cursor, found = scan(what, cursor) end
        local left = time_budget.take(found, VALUES[what], take[what], reply, load, more_held)
        if left then return what, cursor, time_budget.rest({}, found, left) end
        found = {}
        if cursor == '0' then what = after[what] end
    until not what or time_budget.is_spent() or reply.named >= HELD_MOST
    return what, cursor, found
end

local function status(ARGV)
    local what, cursor, bytes = ARGV[2] or 'halted', ARGV[3] or '0', tonumber(ARGV[4] or slices.BYTES)
    local count = tonumber(ARGV[5] or 0)
    if not take[what] or not find(cursor, '^%d+$') or not is_whole(bytes) or not is_whole(count) or count > max(0, #ARGV - 5) then
        return refuse('status: wants now, perhaps what, cursor, bytes, what was found, held')
    end
    local reply, more_held = new_reply(), {}
    local load, found = slices.load(min(bytes, PAGE_BYTES), bytes > 0), {}
    for i = 1, count do found[i] = ARGV[5 + i] end
    halted, each = nil, nil
    time_budget.begin()
    oldest.begin()
    backlog.begin()
    reply.looks_at_lanes = reply.any_paused or oldest.has_few_queues()
    name_more(reply, ARGV, 6 + count, more_held)
    if not ARGV[2] then reply.reasons = reasons.all('limit') end
    if not ARGV[2] then reply.paused_keys, reply.paused_key_count = key_pauses.rows('', PAUSED_KEYS, reasons.key) end
    if #ARGV < 6 + count then what, cursor, found = take_page(reply, what, cursor, found, load, more_held) end
    if what then
        reply.next = time_budget.rest({what, cursor, us(max(0, bytes - (load.all - load.left))), us(#found)}, found, 1)
        time_budget.rest(reply.next, more_held, 1)
    end
    local raw = reply.raw
    reply.raw, reply.lists, reply.named, reply.any_paused, reply.looks_at_lanes = nil, nil, nil, nil, nil
    return answer(reply, raw)
end

return status
