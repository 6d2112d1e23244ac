-- claim_call: one claim as it runs: its arguments, what it may still do, what it has decided; and the types, lanes, turns and rounds that
-- it meets. Every field of these is declared here, with a word; the other parts only change them. test_layers checks that.
--
-- In these files `claim` is this call, `s` a type in one queue as this claim sees it, `l` a lane of it, `e` a gate (see gate.lua), or what
-- opens at a fixed time: {name =, fixed =}.
--
-- uses: gate key_rules slices type_lists
local claim_call = {}

local BUDGET = 500              -- jobs and waiters checked in one claim: 2 ms, well within the 5 ms that slots are granted ahead

local LATE_US = 4000            -- a claim checks nothing after that time: as much again may go into writing what was decided
local LOOKS = 16                -- checks between two questions what the time is

-- The budget pays so much for each of these.
claim_call.TYPE = 8             -- a type that is met: its limits are read, and its counters are written
claim_call.GATE = 2             -- each gate of a type behind its first
claim_call.LANE = 6             -- the list of a lane of a key
claim_call.KEY_GATE = 2         -- each gate of such a lane
claim_call.KEYS = 8             -- so many keys that one command asks for cost 1
local ASKED_MOST = 1000         -- queues in which a claim only asks for jobs
local ADDED_MOST = 64           -- queues that a claim serves because it found something there by asking
local ROOM_MOST = 2000          -- bounds free and prefetch: a turn has 4096 tokens
local WAKE_MOST = 64            -- lanes that wake in one claim, beyond twice those that could start

claim_call.TO_SERVE = 200       -- lanes wake only while so much of the budget is left for those that start
local NEAR = gate.AHEAD         -- how far ahead slots are granted to a worker that is near

claim_call.AGAIN_US = gate.AHEAD_MOST + 1000000 -- what a fault closes is checked again after that; no slot is granted so far ahead

claim_call.NONE = {} -- not to be written: a table of its own for each would cost more than what is in it

-- ---- The arguments

-- Reads the types this worker can run (`mine`, see type_lists), and the set of those names and patterns that rest now. ARGV[first] is the first one.
-- Returns what is wrong.
local function read_types(ARGV, c, first)
    c.rests = claim_call.NONE
    if ARGV[12] == '' then
        c.mine = type_lists.given(ARGV, first)
        return nil
    end
    c.mine = type_lists.of(c.worker, ARGV[12])
    if ARGV[first] then c.rests = type_lists.given(ARGV, first).set end
    if not c.mine then return 'unregistered: worker ' .. c.worker .. ' has not named such types' end
end

-- True when the worker can run that type now, found without a table of types. ARGV[first] is the first name.
function claim_call.names(ARGV, first, name)
    if ARGV[12] == '' then return type_lists.word(type_lists.given(ARGV, first), name) ~= nil end
    local list = type_lists.of(ARGV[2], ARGV[12])
    local word, at = list and type_lists.word(list, name), first
    while ARGV[at] and ARGV[at] ~= word do at = at + 1 end
    return word and not ARGV[at]
end

-- Reads the queues: n to be served, then those that are only asked for. A wide worker asks for hundreds: they count if something is found there.
local function read_names(ARGV, c, n, asked)
    local known, last = {}, 13 + n
    c.queues, c.all_queues, c.asked = {}, {}, asked > 0 and {unpack(ARGV, last + 1, last + asked)} or claim_call.NONE
    for i = 14, c.has_option('w') and last or last + asked do
        local name = ARGV[i]
        if not is_name(name) or known[name] then return 'claim: a queue is not a valid name, or named twice' end
        known[name] = true
        c.all_queues[i - 13] = name
        if i <= last then c.queues[i - 13] = name end
    end
    c.open = c.all_queues -- those that are neither paused nor have a fault
    return read_types(ARGV, c, 14 + n + asked)
end

-- Reads the numbers, see claim.lua. free, prefetch: how many jobs may still be leased; chunk: how many jobs of a queue to read at first.
local function read_numbers(ARGV, c)
    c.turn, c.free, c.prefetch, c.chunk = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
    c.duty_until, c.ahead, c.far = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
    local n, known, before = match(ARGV[13] or '', '^(%d+)/?(%l*)/?(%d*)$')
    local asked = #(known or '')
    n, c.known, c.before = tonumber(n), known, tonumber(before) or 0
    if not (is_whole(c.turn) and is_whole(c.duty_until) and is_whole(n) and asked <= ASKED_MOST) then return 'claim: wrong arguments' end
    if not (is_whole(c.ahead) and is_whole(c.far)) or c.ahead > gate.AHEAD_MOST then return 'claim: ahead or far out of range' end
    if n + asked < (c.has_option('w') and 0 or 1) or #ARGV < 13 + n + asked then return 'claim: wants n queues and the types' end
    if not (is_whole(c.free) and is_whole(c.prefetch) and is_whole(c.chunk, 1)) or c.chunk > 1000 then
        return 'claim: free, prefetch or chunk out of range'
    end
    return read_names(ARGV, c, n, asked)
end

-- ---- The call

-- Asks in one command whether the worker is registered, and whether anything is not as usual: jobs are to run alone, keys have rules of their own, or
-- something is halted or of a newer format. A key that is named n times counts n times, so the sum says which are there; it is asked only where one is.
local function ask_first(c)
    local active, alone, own, format_key = P .. 'active:' .. c.worker, P .. 'alone', P .. 'key_rules', P .. 'format:' .. FORMAT_NEWEST + 1
    local halted, stopped, news = P .. 'halted', P .. 'cancelled', P .. 'news:' .. c.group
    local found = call('EXISTS', active, active, active, active, active, active, active, active, alone, own, halted, stopped, format_key, news)
    local which = found > 8 and call('EXISTS', own, own, own, own, own, own, own, own, alone, alone, alone, alone, halted, stopped, format_key) or 0
    c.halts = which % 4 > 0    -- something is paused or cancelled, or there are newer data: claim_halt
    c.suspects = which % 8 > 3 -- jobs are to run alone: claim_alone
    key_rules.seen(which > 7)
    local queues = found > 8 and c.has_option('t') and call_safe('SRANDMEMBER', news, digits(ADDED_MOST)) or claim_call.NONE
    c.news = queues.err and claim_call.NONE or queues -- queues with a gate of which the group may not have heard: bell.tell
    return found >= 8
end

-- What a worker knows to wait in a queue, letters of claim_dues.
local NOTHING, AT_GATES, KEYS_SLEEP, JOBS_ONLY = 110, 103, 107, 106

-- Notes the keys that are there where jobs stand in the i-th queue that is asked for, or something waits of which the worker does not know, as nobody
-- has rung for it; and `wake:`, where a key that sleeps may wake before the worker knows. Types at the gate `-` are due at once, so a worker that
-- knows of some does not ask.
local function note_signs(c, signs, sleepers, i)
    local queue, known = c.asked[i], byte(c.known, i)
    signs.first[i], signs.queues[i] = #signs + 1, queue
    signs[#signs + 1] = P .. 'queue:' .. queue
    if known == NOTHING then
        signs[#signs + 1] = P .. 'wake:' .. queue
    elseif known ~= JOBS_ONLY then
        signs[#signs + 1] = P .. 'wait:' .. queue .. '/-'
    end
    if known == AT_GATES then signs[#signs + 1] = P .. 'sleep:' .. queue end
    if known == KEYS_SLEEP then sleepers[#sleepers + 1], sleepers.queues[#sleepers + 1] = P .. 'wake:' .. queue, queue end
    signs.first[i + 1] = #signs + 1
end

local function exists(signs, from, to) return call('EXISTS', unpack(signs, signs.first[from], signs.first[to + 1] - 1)) > 0 end

-- True when a key wakes in one of these queues before the time until which the worker knows of none. A key of another kind wakes nobody.
local function wakes_before(sleepers, from, to)
    local words = {digits(to - from + 1), unpack(sleepers, from, to)}
    words[#words + 1], words[#words + 2], words[#words + 3] = 'AGGREGATE', 'MIN', 'WITHSCORES'
    local all = call_safe('ZUNION', unpack(words))
    for i = 1, #all, 2 do
        if all[i] == '*' then return gate.check_time('*', tonumber(all[i + 1])) < sleepers.before end
    end
end

local function add_queue(c, queue)
    if c.added == ADDED_MOST or c.states[queue] or not is_name(queue) then return end
    c.added = c.added + 1
    c.states[queue] = {}
    c.queues[#c.queues + 1] = queue
    if c.has_option('w') then c.all_queues[#c.all_queues + 1] = queue end
end

-- Adds those of a range of the queues that are asked for of which is_there finds something, by halves: mostly there is nothing in any.
local function add_found(c, signs, from, to, is_there)
    if from > to or c.added == ADDED_MOST or not is_there(signs, from, to) then return end
    if from == to then return add_queue(c, signs.queues[from]) end
    local middle = floor((from + to) / 2)
    add_found(c, signs, from, middle, is_there)
    add_found(c, signs, middle + 1, to, is_there)
end

local function is_served(c, queue)
    for i = 1, #c.queues do
        if c.queues[i] == queue then return true end
    end
end

local function add_news(c)
    for _, queue in ipairs(c.news) do
        if not is_served(c, queue) then add_queue(c, queue) end
    end
end

-- Adds queues that are only asked for, after the others, where something is found. While jobs are to run alone it adds all, but for a wide worker.
local function add_asked(c)
    if #c.asked == 0 then return end
    local signs, sleepers, all = {first = {}, queues = {}}, {before = c.before, queues = {}}, c.suspects and not c.has_option('w')
    for i = 1, #c.asked do
        if all then add_queue(c, c.asked[i]) else note_signs(c, signs, sleepers, i) end
    end
    add_found(c, signs, 1, #signs.queues, exists)
    add_found(c, sleepers, 1, #sleepers, wakes_before)
end

-- Begins with what the claim may still do.
local function begin_room(c)
    c.free, c.prefetch = min(c.free, ROOM_MOST), min(c.prefetch, ROOM_MOST)
    c.budget = BUDGET + c.TYPE               -- for jobs and waiters to check; the first type costs nothing
    c.looks, c.is_late = 0, false            -- counted and set by may_go_on()
    c.load = slices.load(nil, true, c.chunk) -- bytes that may be read
    c.waking = 2 * c.free + WAKE_MOST        -- lanes that may wake
    c.left_lanes = 0                         -- jobs that have left lanes without a start: claim_halt
    c.held_taken = 0                         -- held types that were taken back
    c.reserved = c.has_option('r')           -- no idle executor is for jobs without a limit
    c.kept = 0                               -- executors that are not in free now, but left for the queue
    c.keeps = false                          -- closed gates are held for the job that waits there: claim_alone
    c.is_far = c.ahead > NEAR                -- the worker is far from Redis
    c.ahead_asked = c.ahead                  -- how far ahead it would have slots
    c.ahead = c.far > 0 and max(c.ahead, NEAR) or NEAR -- how far ahead slots are granted now,
    c.ahead_at_first = c.ahead               -- the same as the claim began
    c.near = {}                              -- gates whose slots were not granted farther ahead than for a worker that is near
end

-- Begins with what the claim knows.
local function begin_known(c)
    c.order = {}      -- these states as a list
    c.lanes = {}      -- all lanes that were met
    c.tick = now      -- the last ticket
    c.named = 0       -- jobs that were given an id
    c.soonest = huge  -- when the first gate opens at which it has parked something
    c.new_gates = {}  -- set of queues in which something begins to wait at a gate
    c.wakes = {}      -- queue -> gate -> opening time, as far as they were read or written
    c.crowds = {}     -- set of gates at which something was found to wait
    c.unread = {}     -- set of queues that hold jobs which it did not read
    c.missed = {}     -- set of queues to which it did not come
    c.sleepers, c.crowded = nil, nil -- see claim_cache.sleepers
    c.visit, c.stopped = {}, {} -- the type that has its turn, see begin_visit(); the gate that stops its jobs, see stop()
    c.round = {leaving = {}, behind = {}} -- the lanes of that type, see begin_round(): keys that leave the ring; ticket, key ... of those that
                                          -- go behind the others
    for _, queue in ipairs(c.queues) do c.open_queue(queue) end
end

-- Begins with what the claim has decided, for claim_commit and the reply.
local function begin_decided(c)
    c.leases = {}     -- token, entry, token, entry ...
    c.started = {}    -- entries whose lock ends as they start
    c.dead = {}       -- {lane =, reason =, entry =} each
    c.halted = {}     -- jobs that are not to run: {entry =, lane =, batch = (nil: cancelled)} each
    c.used = {}       -- queue -> how many jobs leave it
    c.emptied = {}    -- queues that are listed in `large` and have no job left
    c.more = false    -- a queue has more than could be taken
    c.limits = {}     -- type, its limits, type ...
    c.held = {}      -- types that became held, and that no worker runs
    c.broken = {}     -- limits whose rules cannot be read
    c.paused = {}     -- queues that it does not serve
    c.faults, c.is_noted = {}, {} -- what is wrong with keys, as a list and as a set
    c.starved = false -- a job with a limit could have started, had there been an executor
    c.second_at = -1  -- when the second looks after the duty: claim_duty
    c.alone = false   -- the worker is to have nothing beside a job that runs alone: claim_alone
    c.serves_alone = false -- a job that runs alone was looked for
    c.together = false -- the group of suspects that is being leased: {size =, most =}, see claim_group
end

-- Reads the arguments; returns what is wrong with them.
function claim_call.begin(ARGV)
    local c = claim_call
    c.worker, c.group, c.options = ARGV[2], ARGV[3], ARGV[11]
    local wrong = read_numbers(ARGV, c)
    if wrong then return wrong end
    if not ask_first(c) then return 'unregistered: worker ' .. c.worker end
    c.states = {}     -- [queue][type] -> s, as they were met
    c.added = 0       -- queues that were only asked for, and are served
    add_news(c)
    add_asked(c)
    begin_room(c)
    begin_known(c)
    begin_decided(c)
end

-- True when the claim may check one more. It counts what is asked for, and asks the clock now and then.
function claim_call.may_go_on()
    local c = claim_call
    if c.budget < 1 then return false end
    c.looks = c.looks + 1
    if c.looks % LOOKS == 0 and passed_us() > LATE_US then c.budget, c.is_late = 0, true end
    return c.budget > 0
end

-- Counts the queues of a set as paused: they are neither served nor waited for.
function claim_call.leave_out(set)
    local c, open, served = claim_call, {}, {}
    for _, queue in ipairs(c.open) do
        local list = set[queue] and c.paused or open
        list[#list + 1] = queue
    end
    for _, queue in ipairs(c.queues) do
        if not set[queue] then served[#served + 1] = queue end
    end
    c.queues, c.open = served, open
end

-- Serves one more queue.
function claim_call.open_queue(queue)
    claim_call.states[queue], claim_call.wakes[queue] = claim_call.states[queue] or {}, claim_call.wakes[queue] or {}
end

-- True when this worker runs that type, and its handler rests.
function claim_call.is_resting(name) return claim_call.rests[type_lists.word(claim_call.mine, name)] end

-- True when this worker can run jobs of that type now.
function claim_call.can_run(name)
    local word = type_lists.word(claim_call.mine, name)
    return word and not claim_call.rests[word]
end

function claim_call.has_option(letter) return find(claim_call.options, letter, 1, true) ~= nil end

-- Returns the next ticket of service, later than all before.
function claim_call.next_ticket()
    claim_call.tick = claim_call.tick + 1
    return claim_call.tick
end

-- Notes for the answer that a key is of a wrong kind. nil: it has gone meanwhile.
function claim_call.note_fault(text)
    if not text or claim_call.is_noted[text] then return end
    claim_call.is_noted[text] = true
    claim_call.faults[#claim_call.faults + 1] = text
end

-- ---- What it meets

-- Makes the state of a type in one queue; of: as types.load has it; gates: those for all keys. What is not set here is nil or false at first, and
-- costs nothing until then. Lua makes room for as many members as are set here, rounded up to a power of two, and doubles it when that is full.
function claim_call.new_type(queue, of, gates)
    local path = queue .. '/' .. of.name
    return {
        queue = queue,
        name = of.name,
        type = of,               -- its limits: types.load
        gates = gates,           -- its gates for all keys
        -- counting                 ",gate,gate": the gates that count what is in flight
        mine = claim_call.can_run(of.name), -- this worker can run it
        limited = of.limited,
        keyed = of.path ~= nil,  -- its lanes have keys
        resorts = of.path and of.lanes and of.lanes ~= of.path, -- it may have lanes whose keys were found by another path
        ring = P .. 'ring:' .. path,
        lane_head = path .. '/', -- with which the names of its lanes begin
        lanes = {},              -- key -> l, as they were met
        -- members                  how many lanes are in its ring, where that is known
        gone = false,            -- its ring is empty, and it has left its gate
        -- clear                    nothing waits before its jobs: claim_queue
        -- direct                   its jobs in the queue ask no gate: claim_queue
        -- unknown                  why its jobs are dead, as nobody runs them here; false: they are not: claim_halt
        has_keys = false,        -- a lane of a key was met
        -- first                    the first lease of its jobs that have a limit,
        -- cause                    what let it start,
        -- came_from                and the gate at which the type had waited: claim_causes
        -- own_costs                a job named its cost
        pulled = 0,              -- jobs that have left the queue and started
        parked = 0,              -- jobs that have gone to lanes
        served = 0,              -- jobs that have left lanes
        counts = claim_call.NONE, -- other counters of `stats:`; see count()
    }
end

-- Counts one job of s more.
function claim_call.count(s, what)
    if s.counts == claim_call.NONE then s.counts = {} end
    s.counts[what] = (s.counts[what] or 0) + 1
end

-- Makes the state of a lane of s; gates: those of its key. It has at most 16 fields, but for those of few keys.
function claim_call.new_lane(s, key, gates)
    local name = s.lane_head .. key
    return {
        s = s,
        key = key,
        name = name,
        node = s.name .. '/' .. key,         -- its name where it waits at a gate
        tail = s.type.digest .. '/' .. name, -- with which its tokens end
        gates = gates,
        read = claim_call.NONE, read_at = 1, -- what was read of its jobs; the next one
        fetched = 0,                         -- how many were read
        whole = false,                       -- true when these were all
        parked = claim_call.NONE, parked_next = 1, -- what goes to its tail; the next one of it
        -- empty                                it had no job as it was met, where that is known
        -- placed                               claim_park.place finds a place for it
        -- gone                                 it has no job left, and has left its ring
        -- clear                                nothing waits before its jobs: claim_queue
        -- till                                 until when its key has rules of its own: claim_meet
    }
end

-- ---- Whose turn it is

-- Begins the turn of a type at a gate, at which it waits since ticket; alone: no other type does.
function claim_call.begin_visit(gate_name, ticket, alone)
    local visit = claim_call.visit
    visit.gate, visit.ticket, visit.alone, visit.started = gate_name, ticket, alone, 0 -- started: how many of its jobs
end

-- Notes what stops jobs: the cost of the next one; the gate that does not let it start now (nil: none) and when it opens; of_lane: it is a gate of
-- the key.
function claim_call.stop(cost, e, at, of_lane)
    local stopped = claim_call.stopped
    stopped.cost, stopped.gate, stopped.at, stopped.of_lane = cost, e, at, of_lane
end

-- Notes that no gate stops jobs: what may keep them is a lack of executors.
function claim_call.no_gate_stops() claim_call.stop(nil, nil, nil, false) end

-- Begins a round over the first lanes of the ring of s, of which so many were asked for.
function claim_call.begin_round(s, keys, asked)
    local round = claim_call.round
    round.of, round.keys, round.at = s, keys, 1 -- the type, its lanes, and the place of the next one
    round.whole = #keys < asked                 -- true when the ring has no others
    round.staying = 0                           -- how many lanes the ring keeps
end

-- ---- How far ahead

-- Returns until when slots of a type may be granted. A job that waits for its start takes nothing that is counted in flight.
function claim_call.till(s) return now + (s.type.in_flight and NEAR or claim_call.ahead) end

-- Counts a job that starts then, if it is one of the few that may wait long for it.
function claim_call.count_far(start)
    local c = claim_call
    if start <= now + NEAR then return end
    c.far = c.far - 1
    if c.far < 1 then c.ahead = NEAR end
end

-- True when no further job may wait long for its start, of a worker that is far away.
function claim_call.lacks_far() return claim_call.is_far and claim_call.far < 1 and not claim_call.has_option('e') end

-- Notes when a gate opens that this claim has asked.
function claim_call.note_near(name, opens)
    local c = claim_call
    if opens > now + NEAR and opens <= now + c.ahead_at_first then c.near[name] = true end
end

-- Returns how far ahead slots of that gate are granted.
function claim_call.ahead_of(name) return claim_call.near[name] and NEAR or claim_call.ahead_at_first end

return claim_call
