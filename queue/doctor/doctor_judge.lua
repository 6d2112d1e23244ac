-- doctor_judge: what must hold of one thing in Redis, and which fault it has. A thing has a family and a name:
--
--   key NAME          its kind, and whether its name can be read
--   lane LANE         it stands at one place: in its ring or at a gate; behind it, a gate at which it was seen
--   ring QUEUE/TYPE   so does its type: it is held or waits at a gate; the same
--   listed KEY MEMBER what is listed there has something: a lane jobs, a type lanes, a gate waiters
--   gate QUEUE/GATE   somebody waits there, so it opens: by its time, or by the end of a job
--   star QUEUE        `*` of wake stands for the first gate of sleep
--   active WORKER, worker WORKER   a worker has its leases and its deadline
--   queue QUEUE, type TYPE         it is registered; a type counts in whole numbers
--   limit LIMIT, use TYPE          its rules can be read; the limits that it uses are there
--   slots GATE        it counts the leases that took it
--   schedule SCHEDULE, occurrence SCHEDULE   it has one occurrence, and that has its schedule
--   batch BATCH, aside BATCH       its numbers agree; jobs stand aside only while it is paused
--   about FIELD       nothing was lost within a day
--   queued            queues hold what is counted as waiting
--   counters TYPE LANES LEASED LATER BEFORE  its counters agree with the jobs that were found in lanes, leased and in later;
--                     BEFORE: the counters when that count began. Asked by --repair only
--
-- look(family, name, deep) -> a fault, by its name in doctor_faults, and the values of its sentence; nil: all is right.
-- deep: it looks at all places before it says that somebody stands nowhere.
-- Nothing is written. What is judged is read in the same call, so workers may go on.
--
-- uses: counters doctor_slots rules types
local doctor_judge = {}

local LIMITS_MOST = 200 -- looked through for a lane that seems to stand nowhere; each has up to 8 gates
local GATES_MOST = 2000 -- the same for a type

local function whole(pattern) return '^' .. pattern .. '$' end

local NAME = '[%w_.-]+'
local QUEUE = NAME .. '!?' -- its lanes are in "<queue>!" where they are to run alone
local LANE, ONE, TWO, ANY = QUEUE .. '/' .. NAME .. '/[%w_.-]*', whole(NAME), whole(QUEUE .. '/' .. NAME), '^.+$'

-- The kind of keys that begin with that word, and what stands behind it.
local families = {
    queue = {'list', ONE}, lane = {'list', whole(LANE)}, ring = {'zset', TWO}, wait = {'zset', whole(QUEUE .. '/[%w_.#/-]+')},
    wake = {'zset', whole(QUEUE)}, sleep = {'zset', whole(QUEUE)}, held = {'zset', whole(QUEUE)}, credit = {'hash', TWO},
    gate = {'string', whole(NAME .. '#%d/?[%w_.-]*')}, stop = {'string', whole(NAME .. '/[%w_.-]*')},
    active = {'hash', ANY}, bell = {'list', ANY}, spare = {'list', ANY}, news = {'set', ANY}, told = {'list', ANY},
    batch = {'hash', ONE}, home = {'string', ONE}, aside = {'list', ONE}, id = {'string', ONE}, unique = {'string', ANY},
    format = {'string', whole('%d+')}, line = {'zset', ANY}, due = {'zset', ANY}, turn = {'list', ANY},
    finished = {'string', ONE}, kept = {'zset', ONE}, stats = {'hash', ONE}, at = {'set', whole(NAME .. '#[%w*]/?[%w_.-]*')},
    longest = {'zset', ONE}, hold = {'hash', ONE}, keys = {'hash', ONE}, order = {'string', ONE}, minutes = {'hash', whole('[tl]/' .. NAME)}, ribbon = {'hash', ONE},
}
local singles = {
    about = 'hash', revisions = 'hash', limits = 'hash', types = 'hash', weights = 'hash', key_pauses = 'hash', key_rules = 'set', reasons = 'hash', changes = 'list', acts = 'list', queues = 'set', later = 'zset', dead = 'zset',
    workers = 'zset', reap = 'string', duty = 'hash', halted = 'hash', cancelled = 'hash', batches = 'zset', schedules = 'hash', fired = 'hash',
    opened = 'set', alone = 'zset', runs = 'zset', clock = 'list', settings = 'hash', dead_bytes = 'hash', lines = 'zset', holds = 'zset', large = 'hash',
}

-- What says only where jobs wait, when gates open and what has happened: it is made again from the rest, or by the next jobs. So is a list of jobs in
-- whose place stands what is none.
local DERIVED = {queue = true, gate = true, lane = true, ring = true, wait = true, wake = true, sleep = true, held = true, credit = true, stop = true,
                 at = true, line = true, lines = true, due = true, turn = true, minutes = true, ribbon = true, longest = true, large = true, kept = true, fired = true}

-- The first word of a key and the rest, when it is one of ours; and its kind.
function doctor_judge.key_parts(key)
    if singles[key] then return key, '', singles[key] end
    local family, rest = match(key, '^(%a+):(.*)$')
    local known = families[family or '']
    if known and find(rest, known[2]) then return family, rest, known[1] end
end

-- Counts in words: "1 job", "2 jobs".
function doctor_judge.count(n, word) return us(n) .. ' ' .. word .. (n == 1 and '' or 's') end
local count = doctor_judge.count

local function exists(key) return call('EXISTS', P .. key) == 1 end
local function score(key, member) return tonumber(call('ZSCORE', P .. key, member) or nil) end

local look = {}

function look.key(name)
    local found = call('TYPE', P .. name).ok
    if found == 'none' then return nil end
    local family, _, kind = doctor_judge.key_parts(name)
    if not family then
        local ours = families[match(name, '^(%a+):') or '']
        return ours and 'misnamed' or find(name, '^foreign:') and 'put-aside' or 'foreign', P .. name
    end
    if found ~= kind then return DERIVED[family] and 'in-the-way' or 'wrong-kind', P .. name, found, kind end
end

-- ---- Where lanes and types wait

function doctor_judge.order_of(gate_name) return find(gate_name, '/', 1, true) and 'sleep' or 'wake' end
local order_of = doctor_judge.order_of

local ever -- in this call: limits that there are or were

local function forget() ever = nil end

local function limits_ever()
    if ever then return ever end
    at_next_call(forget)
    ever = {}
    for _, key in ipairs{'limits', 'revisions'} do
        local fields = call('HSCAN', P .. key, '0', 'COUNT', us(2 * LIMITS_MOST))[2]
        for i = 1, #fields, 2 do ever[#ever + 1] = match(fields[i], key == 'limits' and '^(.*)$' or '^limit/(.*)$') end
    end
    return ever
end

-- Lists the gates of a key in a queue at which somebody sleeps, of any limit.
local function gates_asleep(queue, kind, key)
    local limits, names, found = limits_ever(), {}, {}
    for i = 0, min(#limits, LIMITS_MOST) do
        for place = 0, 7 do names[#names + 1] = (limits[i] or kind) .. '#' .. place .. '/' .. key end
    end
    local scores = call('ZMSCORE', P .. 'sleep:' .. queue, unpack(names))
    for i, name in ipairs(names) do
        if scores[i] then found[#found + 1] = name end
    end
    return found
end

-- The keyed gates at which a lane may wait: those of its type now; deep: and others, as its type may have had another limit when it
-- went to sleep.
local function lane_gates(queue, kind, key, deep)
    local names = deep and gates_asleep(queue, kind, key) or {}
    for _, spec in ipairs(types.load(kind).keyed) do names[#names + 1] = spec.name .. '/' .. key end
    return names
end

-- The gates at which a type may wait; deep: all of its queue.
local function type_gates(queue, kind, deep)
    local t, names = types.load(kind), deep and call('ZRANGE', P .. 'wake:' .. queue, '0', us(GATES_MOST - 1)) or {}
    names[#names + 1] = '-'
    for _, spec in ipairs(t.global) do names[#names + 1] = spec.name end
    for _, pause in ipairs(t.paused) do names[#names + 1] = pause.name end
    return names
end

-- Describes a lane "<queue>/<type>/<key>" or a type in a queue "<queue>/<type>": where it stands when it waits at no gate, as which member,
-- its name at gates, and those gates. A gate may follow the name, behind a blank: it was seen there, so no other is looked for.
local function node(family, text, deep)
    local name, seen = match(text, '^(%S+) ?(%S*)$')
    local queue, kind, key = match(name, '^([^/]+)/([^/]+)/?(.*)$')
    deep = deep and seen == ''
    if family == 'lane' then return queue, 'ring:' .. queue .. '/' .. kind, key, kind .. '/' .. key, lane_gates(queue, kind, key, deep) end
    return queue, 'held:' .. queue, kind, kind, type_gates(queue, kind, deep)
end

-- {key =, member =} of each place at which it stands.
function doctor_judge.places(family, name, deep)
    local queue, home, member, waiter, gates = node(family, name, deep)
    local found, known = {}, {}
    gates[#gates + 1] = match(name, ' (%S+)$')
    if score(home, member) then found[1] = {key = home, member = member} end
    for _, gate_name in ipairs(gates) do
        local key = 'wait:' .. queue .. '/' .. gate_name
        if not known[key] and score(key, waiter) then found[#found + 1] = {key = key, member = waiter} end
        known[key] = true
    end
    return found
end

local function look_at_places(family, text, has, deep)
    local places, keys, name = doctor_judge.places(family, text, deep), {}, match(text, '^%S+')
    if #places == 1 then return nil end
    if #places > 1 then
        for i, place in ipairs(places) do keys[i] = place.key end
        return 'twice', name, concat(keys, ', ')
    end
    local too_many = family == 'ring' and deep and call('ZCARD', P .. 'wake:' .. match(name, '^[^/]+')) >= GATES_MOST
    if not too_many then return 'nowhere', name, has end
end

function look.lane(name, deep)
    local jobs = call('LLEN', P .. 'lane:' .. match(name, '^%S+'))
    if jobs > 0 then return look_at_places('lane', name, count(jobs, 'job'), deep) end
end

function look.ring(name, deep)
    local lanes = call('ZCARD', P .. 'ring:' .. match(name, '^%S+'))
    if lanes > 0 then return look_at_places('ring', name, count(lanes, 'lane'), deep) end
end

-- The thing that waits at a gate which is not its own now, and that gate. It may, but not if it stands at another place too.
function doctor_judge.stranger(place, waiter)
    local queue, gate_name = match(place, '^([^/]+)/(.*)$')
    local family = order_of(gate_name) == 'sleep' and 'lane' or 'ring'
    local _, _, _, _, gates = node(family, queue .. '/' .. waiter)
    for _, name in ipairs(gates) do
        if name == gate_name then return nil end
    end
    return family .. ' ' .. queue .. '/' .. waiter, gate_name
end

-- The key that is there when a member is listed rightly; nil: it cannot stand there.
local stands_for = {}

function stands_for.ring(rest, key) return 'lane:' .. rest .. '/' .. key end
function stands_for.held(queue, kind) return 'ring:' .. queue .. '/' .. kind end
stands_for.credit = stands_for.ring
function stands_for.batches(_, name) return 'batch:' .. name end
function stands_for.wake(queue, gate_name) return order_of(gate_name) == 'wake' and 'wait:' .. queue .. '/' .. gate_name or nil end
function stands_for.sleep(queue, gate_name) return order_of(gate_name) == 'sleep' and 'wait:' .. queue .. '/' .. gate_name or nil end
function stands_for.wait(place, waiter)
    local queue, gate_name = match(place, '^([^/]+)/(.*)$')
    if order_of(gate_name) == 'wake' then return is_name(waiter) and 'ring:' .. queue .. '/' .. waiter or nil end
    return find(waiter, '^[%w_.-]+/[%w_.-]*$') and 'lane:' .. queue .. '/' .. waiter or nil
end

function look.listed(name)
    local key, member = match(name, '^(%S+) (.*)$')
    local family, rest, kind = doctor_judge.key_parts(key)
    if not call(kind == 'hash' and 'HGET' or 'ZSCORE', P .. key, member) then return nil end
    local wanted = stands_for[family](rest, member)
    if wanted and exists(wanted) then return nil end
    return family == 'credit' and 'credit' or 'listed', key, member, wanted or 'such place'
end

-- ---- Gates

-- Who waits there waits for the end of a job: will one wake it?
local function is_woken(queue, gate_name)
    local flight, rule = doctor_slots.says(gate_name)
    if not flight or not rule.in_flight then return true end
    return call('SISMEMBER', P .. 'at:' .. gate_name, queue) == 1
        and (flight >= rule.count or call('SISMEMBER', P .. 'opened', gate_name) == 1)
end

function look.gate(name)
    local queue, gate_name = match(name, '^([^/]+)/(.*)$')
    if not exists('wait:' .. name) then return nil end
    local opens = score(order_of(gate_name) .. ':' .. queue, gate_name)
    if not opens or opens == huge and not is_woken(queue, gate_name) then return 'closed', gate_name, queue end
end

function look.star(queue)
    local star = score('wake:' .. queue, '*')
    local opens = tonumber(call('ZRANGE', P .. 'sleep:' .. queue, '0', '0', 'WITHSCORES')[2] or nil)
    if not star and not opens or star and opens and (star <= opens or star <= now) then return nil end
    return 'star', queue
end

function look.slots(gate_name)
    local says, counts, total = doctor_slots.says(gate_name), doctor_slots.count()
    if not counts then return 'slots-uncounted', count(total, 'job') end
    local leases = counts[gate_name] or 0
    if says and says ~= leases then return 'slots', gate_name, count(says, 'job'), leases end
end

-- ---- Workers

function look.active(id)
    if not exists('active:' .. id) or score('workers', id) then return nil end
    return 'worker-unlisted', id, count(call('HLEN', P .. 'active:' .. id) - call('HEXISTS', P .. 'active:' .. id, '@'), 'job')
end

function look.worker(id)
    local till = score('workers', id)
    if not till then return nil end
    if call('HEXISTS', P .. 'active:' .. id, '@') == 0 then return 'worker-bare', id end
    if till < now then return 'silent', id, floor((now - till) / 1000000), count(call('HLEN', P .. 'active:' .. id) - 1, 'job') end
end

-- ---- What is registered

function look.queue(name)
    if not exists('queue:' .. name) and not exists('wake:' .. name) and not exists('held:' .. name) then return nil end
    if find(name, '!', 1, true) and not score('alone', name) then return 'unregistered', name, 'alone', 'nobody runs its jobs' end
    if call('SISMEMBER', P .. 'queues', name) == 0 then return 'unregistered', 'queue ' .. name, 'queues', 'status and changes of limits skip it' end
end

function look.keys(name)
    if not exists('keys:' .. name) or call('SISMEMBER', P .. 'key_rules', name) == 1 then return nil end
    return 'unregistered', 'limit ' .. name, 'key_rules', 'claims know no rules of its keys'
end

local COUNTERS = {'enqueued', 'pulled', 'parked', 'returned', 'served', 'done', 'retried', 'dead', 'back', 'scheduled', 'dropped'}

-- The counters of a type that are no whole numbers, or too large for one.
function doctor_judge.no_counters(name)
    local values, wrong = call('HMGET', P .. 'stats:' .. name, unpack(COUNTERS)), {}
    for i = 1, #COUNTERS do
        if values[i] and values[i] ~= '0' and counters.number(values[i]) == 0 then wrong[#wrong + 1] = COUNTERS[i] end
    end
    return wrong
end

function look.type(name)
    if not exists('stats:' .. name) then return nil end
    if call('HEXISTS', P .. 'types', name) == 0 then return 'unregistered', 'type ' .. name, 'types', 'status skips it' end
    local wrong = doctor_judge.no_counters(name)
    if #wrong > 0 then return 'counter', name, concat(wrong, ', ') end
end

function look.limit(name)
    local text = call('HGET', P .. 'limits', name)
    local set = text and rules.read(text)
    if text and not set then return 'limit', name, sub(text, 1, 100) end
    if set and set.weighted and not exists('weights') then return 'weights', name end
end

function look.use(name)
    local text = call('HGET', P .. 'types', name)
    for _, limit in ipairs(text and types.parse(name, text).use or {}) do
        if call('HEXISTS', P .. 'limits', limit) == 0 then return 'limit-gone', name, limit end
    end
end

-- ---- Schedules, batches, what Redis lost

local function has_schedule(name) return call('HEXISTS', P .. 'schedules', name) == 1 end
local function has_occurrence(name) return score('later', 's ' .. name .. '\n') ~= nil end

function look.schedule(name) return has_schedule(name) and not has_occurrence(name) and 'schedule' or nil, name end
function look.occurrence(name) return has_occurrence(name) and not has_schedule(name) and 'occurrence' or nil, name end

function look.batch(name)
    local f = call('HMGET', P .. 'batch:' .. name, 'total', 'done', 'dead', 'cancelled', 'sealed', 'ended')
    local total, ended = tonumber(f[1] or nil), 0
    if not total then return nil end
    for i = 2, 4 do ended = ended + (tonumber(f[i] or 0) or 0) end
    if ended > total then return 'batch', name, ended, count(total, 'job') end
    local is_open = f[5] and not f[6] and ended == total
    if is_open and call('HEXISTS', P .. 'halted', 'b/' .. name) == 0 then return 'batch-open', name end -- else it ends as it is resumed
end

function look.aside(name)
    local jobs = call('LLEN', P .. 'aside:' .. name)
    if jobs > 0 and call('HEXISTS', P .. 'halted', 'b/' .. name) == 0 then return 'aside', name, count(jobs, 'job') end
end

local DAY_US = 86400 * 1000000

local function seconds_ago(at) return (now - tonumber(at)) / 1000000 end

function look.about(field)
    local text = call('HGET', P .. 'about', field) or ''
    if field == 'back' then
        local from, to, at = match(text, '^(%d+) (%d+) (%d+)$')
        if at and now - tonumber(at) <= DAY_US then return 'went-back', seconds_ago(at), seconds_ago(from), seconds_ago(to) end
    elseif field == 'lost' and tonumber(text) and now - tonumber(text) <= DAY_US then
        return 'lost', floor(seconds_ago(text))
    end
end

-- ---- Counters

local function read_counters(name)
    local values, n = call_safe('HMGET', P .. 'stats:' .. name, unpack(COUNTERS)), {}
    for i = 1, #COUNTERS do n[COUNTERS[i]] = counters.number(values[i]) end
    return n
end

-- Returns all counters of a type, joined by commas.
function doctor_judge.counters(name)
    local n, texts = read_counters(name), {}
    for i = 1, #COUNTERS do texts[i] = us(n[COUNTERS[i]]) end
    return concat(texts, ',')
end

-- How many more jobs were found {parked, leased, later} than are counted; nil: as many, or no more of them than counters have
-- moved by while they were found. And whether they have moved.
function doctor_judge.counters_off(name)
    local kind, lanes, leased, later, before = match(name, '^(%S+) (%d+) (%d+) (%d+) (%S+)$')
    local n, moves, i = read_counters(kind), 0, 0
    for text in before:gmatch('[^,]+') do
        i = i + 1
        local moved = n[COUNTERS[i]] - tonumber(text)
        moves = moves + max(moved, -moved)
    end
    local parked = tonumber(lanes) - (n.parked + n.returned - n.served)
    local runs = tonumber(leased) - (n.pulled + n.served - n.done - n.retried - n.dead - n.back)
    local scheduled = tonumber(later) - n.scheduled
    local off = max(max(parked, -parked), max(max(runs, -runs), max(scheduled, -scheduled)))
    if off > moves then return {type = kind, parked = parked, leased = runs, later = scheduled, moved = moves > 0} end
end

function look.counters(name)
    local off = doctor_judge.counters_off(name)
    if off then return off.moved and 'counters-moving' or 'counters', off.type, off.parked, off.leased, off.later end
end

local TYPES_MOST = 200 -- whose counters are added up in one call

-- Jobs of each type that were enqueued and that no worker has looked at, by the counters, and of all; and how many queues hold. What
-- others push is not counted, so fewer than there are say nothing. nil: types are too many.
function doctor_judge.waiting()
    if call('HLEN', P .. 'types') > TYPES_MOST then return nil end
    local of_type, all, queued = {}, 0, 0
    for _, name in ipairs(call('HKEYS', P .. 'types')) do
        local n = read_counters(name)
        of_type[name] = max(0, n.enqueued - n.pulled - n.parked - n.dropped)
        all = all + of_type[name]
    end
    for _, name in ipairs(call('SMEMBERS', P .. 'queues')) do
        local length = call_safe('LLEN', P .. 'queue:' .. name)
        queued = queued + (type(length) == 'number' and length or 0)
    end
    return of_type, all, queued
end

function look.queued()
    local of_type, waiting, queued = doctor_judge.waiting()
    if of_type and waiting > queued then return 'queued', count(waiting, 'job'), queued end
end

-- ----

function doctor_judge.is_family(family) return look[family] ~= nil end

local function result(ok, fault, ...)
    if ok then return fault, ... end
    local text = type(fault) == 'table' and fault.err or tostring(fault)
    if not find(text, 'WRONGTYPE', 1, true) then return 'error', text end
end

-- What f returns; 'error' and why when it fails. Nothing when a key holds something else than it should: then that key is the finding.
function doctor_judge.try(f, ...) return result(pcall(f, ...)) end

function doctor_judge.look(family, name, deep) return doctor_judge.try(look[family], name, deep) end

return doctor_judge
