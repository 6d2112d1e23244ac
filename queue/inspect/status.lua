-- status: what there is, in numbers, a page a call; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now [, what is walked, cursor: the place where the last call ended, bytes of jobs that may still be read
--       [, queue, rank: of held types, ...]]
-- role: viewer
-- reply: JSON: {"now": "us", "dead": n, "dead_bytes": text (-1: not all counted yet), "later": n,
--        "queues": {queue: length}, "paused": {queue: "us", as paused.since tells it},
--        "unread": {queue that is paused: true, as jobs stand there that were not looked at},
--        "asleep": {queue: gates at which lanes sleep}, "held": {type: true, ...},
--        "seen": {type: {queue where jobs of it are among the first: true, where one of these names its cost}},
--        "types": {type: {"stats": {counter: text}, "parked": n, "cost": n, "own_costs": claims noted that jobs name it,
--                  "use": [limit, ...], "in_pause": lanes of it may stand in a queue that is paused, "keyless": as rates.keyless tells it}},
--        "workers": {id: {"info": place in raw, "until": "us", "running": n, "order": as orders has it}}, "next": [what, cursor, ...], the place to go on from; absent: that was all},
--        raw: what workers say of themselves. Times are text: JSON numbers here keep 14 digits. What is 0, false or empty is left out.
--        A member may come twice, the later one counts
--
-- writes: nothing
-- uses: dead_bytes lane orders paused rates slices types

local LOOKED_AT = 100    -- jobs of each queue, as far as slices.BYTES go for all queues
local PAGE_BYTES = 65536 -- of these in one call
local PAUSED_MOST = 20   -- paused queues whose lanes are looked at for each type that has any; more: it may be in one
local HELD_MOST = 1000   -- held types named by one call, about

local COUNTS = {halted = '100', queues = '50', types = '150', workers = '4'} -- asked of a scan, which may find some more
local COSTS = {halted = 2, queues = 4, types = 0.5, workers = 10} -- of each name or value that a scan finds, about 8 us
local ROOM = 150 -- a call ends when its rows have cost as much: some 2 ms, so that a few of each need no second one

-- ---- Queues

-- Looks at the first jobs of a queue; returns whether there are more behind them.
local function look(queue, length, seen, load)
    local entries = length > 0 and slices.read('LRANGE', P .. 'queue:' .. queue, 0, LOOKED_AT, load) or {}
    for _, entry in ipairs(entries) do
        local name = match(entry, '"type"%s*:%s*"([%w_.-]+)"')
        if name then
            seen[name] = seen[name] or {}
            seen[name][queue] = seen[name][queue] or find(entry, '"cost"', 1, true) ~= nil
        end
    end
    return #entries < length
end

-- Names the types that are held in a queue, from a rank on. What is left is for the next call.
local function name_held(reply, queue, rank, place)
    local most = max(0, HELD_MOST - reply.named)
    local names = call('ZRANGE', P .. 'held:' .. queue, us(rank), us(rank + most))
    for i = 1, min(#names, most) do reply.held[names[i]] = true end
    reply.named = reply.named + #names
    if #names > most then place[#place + 1], place[#place + 2] = queue, us(rank + most) end
end

local function queue_row(reply, queue, load, place)
    local length, asleep, since = call('LLEN', P .. 'queue:' .. queue), call('ZCARD', P .. 'sleep:' .. queue), paused.since(queue)
    local more = look(queue, length, reply.seen, load)
    reply.queues[queue] = length
    if asleep > 0 then reply.asleep[queue] = asleep end
    if since ~= '' then reply.paused[queue], reply.unread[queue] = since, more or nil end
    name_held(reply, queue, 0, place)
end

-- ---- Types

-- The paused queues in which lanes may stand, a list; true: any type that is parked may stand in one.
local function halted_queues()
    local page, queues = call('HSCAN', P .. 'halted', '0', 'MATCH', 'q/*', 'COUNT', COUNTS.halted), {}
    for i = 1, #page[2], 2 do queues[#queues + 1] = sub(page[2][i], 3) end
    if page[1] ~= '0' or #queues > PAUSED_MOST then return true end
    for _, queue in ipairs(queues) do
        if call('EXISTS', P .. 'sleep:' .. queue) == 1 then return true end
    end
    return queues
end

local function in_pause(name, queues)
    if queues == true or #queues == 0 then return queues == true end
    local rings = {}
    for i, queue in ipairs(queues) do rings[i] = P .. 'ring:' .. queue .. '/' .. name end
    return call('EXISTS', unpack(rings)) > 0
end

local function stats_of(name)
    local list, stats = call('HGETALL', P .. 'stats:' .. name), {}
    for i = 1, #list, 2 do stats[list[i]] = list[i + 1] end
    return stats
end

local function type_row(name, text, halted)
    local stats = stats_of(name)
    local row, parked = {stats = stats}, lane.parked_by(stats.parked, stats.returned, stats.served)
    if parked > 0 then row.parked, row.in_pause = parked, in_pause(name, halted) or nil end
    if stats.keyless then row.keyless = rates.keyless(name) end
    if text == '' then return row end
    local t = types.parse(name, text)
    row.cost, row.own_costs, row.use = t.cost ~= 1 and t.cost or nil, t.own_costs, t.use[1] and t.use
    return row
end

-- ---- The pages

local take = {}

-- Queues that are paused may be there before their first job.
function take.halted(reply, found, load, place)
    for i = 1, #found, 2 do
        local queue = match(found[i], '^q/(.+)$')
        if is_name(queue) then queue_row(reply, queue, load, place) end
    end
end

function take.queues(reply, found, load, place)
    for _, queue in ipairs(found) do
        if is_name(queue) then queue_row(reply, queue, load, place) end
    end
end

function take.types(reply, found)
    local halted = halted_queues()
    for i = 1, #found, 2 do
        if is_name(found[i]) then reply.types[found[i]] = type_row(found[i], found[i + 1], halted) end
    end
end

function take.workers(reply, found)
    for i = 1, #found, 2 do
        local id, active = found[i], P .. 'active:' .. found[i]
        if is_name(id) then
            local said = call('HGET', active, '@') or ''
            local order = orders.read(match(said, '"instance":"([^"]*)"'))
            reply.raw[#reply.raw + 1] = said
            reply.workers[id] = {info = #reply.raw - 1, ['until'] = us(tonumber(found[i + 1])), running = max(0, call('HLEN', active) - 1),
                                 order = order ~= '' and order or nil}
        end
    end
end

local function scan(what, cursor)
    if what == 'halted' then return unpack(call('HSCAN', P .. 'halted', cursor, 'MATCH', 'q/*', 'COUNT', COUNTS.halted)) end
    if what == 'queues' then return unpack(call('SSCAN', P .. 'queues', cursor, 'COUNT', COUNTS.queues)) end
    if what == 'types' then return unpack(call('HSCAN', P .. 'types', cursor, 'COUNT', COUNTS.types)) end
    return unpack(call('ZSCAN', P .. 'workers', cursor, 'COUNT', COUNTS.workers))
end

local after = {halted = 'queues', queues = 'types', types = 'workers'}

local function new_reply()
    return {now = us(now), dead = call('ZCARD', P .. 'dead'), dead_bytes = us(dead_bytes.read() or -1), later = call('ZCARD', P .. 'later'),
            queues = {}, paused = {}, unread = {}, asleep = {}, held = {}, seen = {}, types = {}, workers = {}, raw = {}, named = 0}
end

-- The queues whose held types are not all named yet.
local function name_more(reply, ARGV, place)
    for i = 5, #ARGV - 1, 2 do name_held(reply, ARGV[i], tonumber(ARGV[i + 1]) or 0, place) end
end

-- Takes what one call may. Returns the place to go on from; nil: that was all.
local function take_page(reply, what, cursor, load, more_held)
    local room, found = ROOM, nil
    repeat
        cursor, found = scan(what, cursor)
        take[what](reply, found, load, more_held)
        room = room - COSTS[what] * #found
        if cursor == '0' then what = after[what] end
    until not what or room <= 0 or reply.named >= HELD_MOST
    return what, cursor
end

local function status(ARGV)
    local what, cursor, bytes = ARGV[2] or 'halted', ARGV[3] or '0', tonumber(ARGV[4] or slices.BYTES)
    if not take[what] or not find(cursor, '^%d+$') or not is_whole(bytes) then
        return refuse('status: wants now, perhaps what, cursor, bytes, held')
    end
    local reply, more_held = new_reply(), {}
    local load = slices.load(min(bytes, PAGE_BYTES), bytes > 0)
    name_more(reply, ARGV, more_held)
    if #ARGV < 5 then what, cursor = take_page(reply, what, cursor, load, more_held) end
    if what then reply.next = {what, cursor, us(max(0, bytes - (load.all - load.left))), unpack(more_held)} end
    local raw = reply.raw
    reply.raw, reply.named = nil, nil
    return answer(reply, raw)
end

return status
