-- doctor_judge: what must hold of one thing in Redis, and which fault it has. A thing has a family and a name:
--
--   key NAME             its kind, and whether its name can be read
--   lane LANE            it stands in its ring or at one gate           ringed LANE      it is in a ring, so it has jobs
--   credit LANE          it has starts of its share, so it has jobs
--   ring QUEUE/TYPE      its type waits at one gate or is held          held QUEUE/TYPE  it is held, so its ring has lanes
--   wait QUEUE/GATE      the gate is in wake, or in sleep               waiter QUEUE/GATE NODE  who waits there has something
--                        and lists the queue where only an end opens it
--   wake QUEUE GATE, sleep QUEUE GATE   somebody waits there            star QUEUE       `*` of wake stands for sleep
--   active WORKER, worker WORKER        a worker has its leases and its deadline
--   queue QUEUE          it is registered                               type TYPE        so is it, and it counts in numbers
--   limit LIMIT          its rules can be read                          use TYPE         the limits that it uses are there
--   change LIMIT         it is there when the log of changes says so
--   record HEADER        it can be read                                 occurrence SCHEDULE, schedule SCHEDULE
--   batch BATCH, batches BATCH          its numbers agree; it is there  aside BATCH      jobs stand aside only while it is paused
--   duty GROUP           its last holder is alive                       about FIELD      nothing was lost within a day
--
-- Of these the name says what was found on all pages before:
--   slots GATE           it counts the leases that took it              flight           leases are few enough to be counted
--   counters TYPE LANES LEASED LATER OFF BEFORE   the counters agree with the jobs that were found in lanes, leased and in
--                        later; OFF 1: they did not in the last pass; BEFORE: the counters when this pass began
--   queued               queues hold what is counted as waiting         dead_bytes COUNTED FOUND   the dead jobs have these bytes
--
-- look(family, name, deep) -> a fault, by its name in doctor_faults, and the values of its sentence; nil: all is right.
-- deep: it looks at all places before it says that somebody stands nowhere.
-- Nothing is written. What is judged is read in the same call, so workers may go on.
--
-- uses: check dead_bytes doctor_slots lane lease leases rules slices types
local doctor_judge = {}

-- What was found on other pages: names of limits that gates are named after and that are not there, as what waits at their gates
-- waits all the same; and of workers that are not registered.
local gone, orphans = {}, {}

function doctor_judge.begin(limits, workers) gone, orphans = limits, workers end

local LIMITS_MOST = 200 -- looked through for a lane that seems to stand nowhere; each has up to 8 gates
local GATES_MOST = 2000 -- the same for a type
local SILENT_US = 3600 * 1000000

local function whole(pattern) return '^' .. pattern .. '$' end

local NAME = '[%w_.-]+'
local QUEUE = NAME .. '!?' -- its lanes are in "<queue>!" where they are to run alone
local LANE, ONE, TWO, ANY = QUEUE .. '/' .. NAME .. '/[%w_.-]*', whole(NAME), whole(QUEUE .. '/' .. NAME), '^.+$'

-- The kind of keys that begin with that word, and what stands behind it.
local families = {
    queue = {'list', ONE}, lane = {'list', whole(LANE)}, ring = {'zset', TWO}, wait = {'zset', whole(QUEUE .. '/[%w_.#/-]+')},
    wake = {'zset', whole(QUEUE)}, sleep = {'zset', whole(QUEUE)}, held = {'zset', whole(QUEUE)}, credit = {'hash', TWO},
    gate = {'string', whole(NAME .. '#%d/?[%w_.-]*')}, stop = {'string', whole(NAME .. '/[%w_.-]*')},
    active = {'hash', ANY}, bell = {'list', ANY}, spare = {'list', ANY}, told = {'list', ANY},
    batch = {'hash', ONE}, aside = {'list', ONE}, id = {'string', ONE}, unique = {'string', ANY},
    line = {'zset', ANY}, due = {'zset', ANY}, turn = {'list', ANY},
    finished = {'string', ONE}, stats = {'hash', ONE}, at = {'set', whole(NAME .. '#%d/?[%w_.-]*')},
}
local singles = {
    about = 'hash', revisions = 'hash', limits = 'hash', types = 'hash', weights = 'hash', changes = 'list', queues = 'set', later = 'zset', dead = 'zset',
    workers = 'zset', reap = 'string', duty = 'hash', halted = 'hash', cancelled = 'hash', batches = 'zset', schedules = 'hash',
    opened = 'set', alone = 'zset', runs = 'zset', clock = 'list', settings = 'hash', dead_bytes = 'hash',
}

-- What says only where jobs wait, and when gates open: it is made again from the rest, or by the next jobs.
local DERIVED = {gate = true, lane = true, ring = true, wait = true, wake = true, sleep = true, held = true, credit = true, stop = true,
                 at = true, line = true, due = true, turn = true}

-- The first word of a key and the rest, when it is one of ours; and its kind.
function doctor_judge.key_parts(key)
    if singles[key] then return key, '', singles[key] end
    local family, rest = match(key, '^(%a+):(.*)$')
    local known = families[family or '']
    if known and find(rest, known[2]) then return family, rest, known[1] end
end

-- "1 job", "2 jobs"
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
        if find(name, '^foreign:') then return 'put-aside', P .. name end
        return families[match(name, '^(%a+):') or ''] and 'misnamed' or 'foreign', P .. name
    end
    if found ~= kind then return DERIVED[family] and 'in-the-way' or 'wrong-kind', P .. name, found, kind end
end

-- ---- Lanes

-- The keyed gates at which a lane may wait: those of its type now; deep: those of any limit, as its type may have had another one
-- when it went to sleep.
local function lane_gates(kind, key, deep)
    local names, known = {}, {}
    for _, spec in ipairs(types.load(kind).keyed) do
        names[#names + 1] = spec.name .. '/' .. key
        known[spec.name] = true
    end
    if not deep then return names end
    local limits = call('HKEYS', P .. 'limits')
    for _, limit in ipairs(gone) do limits[#limits + 1] = limit end
    limits[#limits + 1] = kind
    for i = 1, min(#limits, LIMITS_MOST) do
        for place = 0, 7 do
            local name = limits[i] .. '#' .. place
            if not known[name] then names[#names + 1] = name .. '/' .. key end
            known[name] = true
        end
    end
    return names
end

-- Is a lane in its ring, and the names of the gates at which it waits.
function doctor_judge.lane_places(name, deep)
    local queue, kind, key = lease.lane_parts(name)
    local ringed, gates = score('ring:' .. queue .. '/' .. kind, key) ~= nil, {}
    for _, gate_name in ipairs(lane_gates(kind, key, deep)) do
        if score('wait:' .. queue .. '/' .. gate_name, kind .. '/' .. key) then gates[#gates + 1] = gate_name end
    end
    return ringed, gates
end

function look.lane(name, deep)
    local jobs = call('LLEN', P .. 'lane:' .. name)
    if jobs == 0 then return nil end
    local ringed, gates = doctor_judge.lane_places(name, deep)
    if not ringed and #gates == 0 then return 'lane-nowhere', name, count(jobs, 'job') end
    if ringed and #gates > 0 or #gates > 1 then return 'lane-twice', name, ringed and 'its ring, ' or '', concat(gates, ', gate ') end
end

function look.ringed(name)
    local queue, kind, key = lease.lane_parts(name)
    if exists('lane:' .. name) or not score('ring:' .. queue .. '/' .. kind, key) then return nil end
    return 'no-lane', format('ring %s/%s', queue, kind), name
end

function look.credit(name)
    local queue, kind, key = lease.lane_parts(name)
    if exists('lane:' .. name) or call('HEXISTS', P .. 'credit:' .. queue .. '/' .. kind, key) == 0 then return nil end
    return 'credit', queue, kind, name
end

-- ---- Types

-- The gates at which a type may wait; deep: all of its queue.
local function type_gates(queue, kind, deep)
    if deep then return call('ZRANGE', P .. 'wake:' .. queue, '0', us(GATES_MOST - 1)) end
    local t, names = types.load(kind), {'-'}
    for _, spec in ipairs(t.global) do names[#names + 1] = spec.name end
    for _, pause in ipairs(t.paused) do names[#names + 1] = pause.name end
    return names
end

-- Is a type held, and the names of the gates at which it waits.
function doctor_judge.type_places(queue, kind, deep)
    local gates, known = {}, {}
    for i = deep and 1 or 2, 2 do
        for _, name in ipairs(type_gates(queue, kind, i == 1)) do
            if not known[name] and score('wait:' .. queue .. '/' .. name, kind) then gates[#gates + 1] = name end
            known[name] = true
        end
    end
    return score('held:' .. queue, kind) ~= nil, gates
end

function look.ring(name, deep)
    local queue, kind = match(name, '^([^/]+)/(.*)$')
    local lanes = call('ZCARD', P .. 'ring:' .. name)
    if lanes == 0 then return nil end
    local held, gates = doctor_judge.type_places(queue, kind, deep)
    if not held and #gates == 0 then
        if deep and call('ZCARD', P .. 'wake:' .. queue) >= GATES_MOST then return nil end
        return 'type-nowhere', kind, queue, count(lanes, 'lane')
    end
    if held and #gates > 0 or #gates > 1 then return 'type-twice', kind, queue, held and 'held, ' or '', concat(gates, ', gate ') end
end

function look.held(name)
    local queue, kind = match(name, '^([^/]+)/(.*)$')
    if exists('ring:' .. name) or not score('held:' .. queue, kind) then return nil end
    return 'no-ring', 'held:' .. queue, kind
end

-- ---- Gates

function doctor_judge.order_of(gate_name) return find(gate_name, '/', 1, true) and 'sleep' or 'wake' end
local order_of = doctor_judge.order_of

-- Who waits there waits for the end of a job: will one wake it?
local function look_at_end(queue, gate_name)
    local flight, rule = doctor_slots.says(gate_name)
    if not flight or not rule.in_flight then return nil end
    if call('SISMEMBER', P .. 'at:' .. gate_name, queue) == 0 then return 'queue-unlisted', gate_name, queue end
    if flight < rule.count and call('SISMEMBER', P .. 'opened', gate_name) == 0 then return 'room-unused', gate_name, queue end
end

function look.wait(name)
    local queue, gate_name = match(name, '^([^/]+)/(.*)$')
    if not exists('wait:' .. name) then return nil end
    local opens = score(order_of(gate_name) .. ':' .. queue, gate_name)
    if not opens then return 'gate-unlisted', gate_name, queue, order_of(gate_name) end
    if opens == huge then return look_at_end(queue, gate_name) end
end

-- Who waits at a gate that is not its own now may do so, but not if it stands at another place too.
local function look_at_stranger(queue, gate_name, node, keyed)
    for _, name in ipairs(keyed and lane_gates(match(node, '^([^/]+)/(.*)$')) or type_gates(queue, node)) do
        if name == gate_name then return nil end
    end
    return look[keyed and 'lane' or 'ring'](queue .. '/' .. node, true)
end

function look.waiter(name)
    local place, node = match(name, '^(%S+) (.*)$')
    local queue, gate_name = match(place, '^([^/]+)/(.*)$')
    if not score('wait:' .. place, node) then return nil end
    local keyed, is_lane = order_of(gate_name) == 'sleep', match(node, '^[%w_.-]+/[%w_.-]*$') ~= nil
    if keyed ~= is_lane or not is_lane and not is_name(node) then return 'misplaced', gate_name, queue, node end
    if exists((keyed and 'lane:' or 'ring:') .. queue .. '/' .. node) then return look_at_stranger(queue, gate_name, node, keyed) end
    return keyed and 'no-lane' or 'no-ring', format('gate %s of queue %s', gate_name, queue), node
end

local function listed(order, name)
    local queue, gate_name = match(name, '^(%S+) (.*)$')
    if not score(order .. ':' .. queue, gate_name) then return nil end
    if exists('wait:' .. queue .. '/' .. gate_name) and order_of(gate_name) == order then return nil end
    return 'gate-empty', order, queue, gate_name
end

function look.wake(name) return listed('wake', name) end
function look.sleep(name) return listed('sleep', name) end

function look.star(queue)
    local star = score('wake:' .. queue, '*')
    local first = call('ZRANGE', P .. 'sleep:' .. queue, '0', '0', 'WITHSCORES')
    local opens = tonumber(first[2] or nil)
    if star and not opens then return 'star-alone', queue end
    if opens and not star then return 'star-missing', queue end
    if opens and star > opens and star > now then return 'star-late', queue end
end

-- ---- Workers

function look.active(id)
    if not exists('active:' .. id) then return nil end
    local jobs = call('HLEN', P .. 'active:' .. id) - call('HEXISTS', P .. 'active:' .. id, '@')
    if not score('workers', id) then return 'worker-unlisted', id, count(jobs, 'job') end
end

local LEASES_MOST = 200 -- of a silent worker, looked at

-- What is wrong with the first key that keeps its jobs from being taken back.
local function kept_by(id)
    local wrong = check.wrong_kind('reap', 'string') or check.wrong_kind('dead', 'zset')
    for _, job in ipairs(wrong and {} or leases.read(id, LEASES_MOST, slices.load())) do
        wrong = wrong or lane.wrong(lease.alone(job.lane))
    end
    return wrong
end

function look.worker(id)
    local till = score('workers', id)
    if not till then return nil end
    if call('HEXISTS', P .. 'active:' .. id, '@') == 0 then return 'worker-bare', id end
    if till >= now then return nil end
    local jobs, wrong = call('HLEN', P .. 'active:' .. id) - 1, kept_by(id)
    if wrong then return 'kept', id, count(jobs, 'job'), wrong end
    return 'silent', id, floor((now - till) / 1000000), count(jobs, 'job')
end

function look.duty(group)
    local holder, till = match(call('HGET', P .. 'duty', group) or '', '^(%S+) (%d+) ')
    if not holder or tonumber(till) > now - SILENT_US or score('workers', holder) then return nil end
    return 'duty', group, holder
end

-- ---- What is registered

function look.queue(name)
    if not exists('queue:' .. name) and not exists('wake:' .. name) and not exists('held:' .. name) then return nil end
    if find(name, '!', 1, true) and not score('alone', name) then return 'alone', name end
    if call('SISMEMBER', P .. 'queues', name) == 0 then return 'queue', name end
end

local COUNTERS = {'enqueued', 'pulled', 'parked', 'returned', 'served', 'done', 'retried', 'dead', 'back', 'scheduled', 'dropped'}

-- The counters of a type that are no whole numbers, or too large for one.
function doctor_judge.no_counters(name)
    local values, wrong = call('HMGET', P .. 'stats:' .. name, unpack(COUNTERS)), {}
    for i = 1, #COUNTERS do
        if values[i] and values[i] ~= '0' and lease.counted(values[i]) == 0 then wrong[#wrong + 1] = COUNTERS[i] end
    end
    return wrong
end

function look.type(name)
    if not exists('stats:' .. name) then return nil end
    if call('HEXISTS', P .. 'types', name) == 0 then return 'type', name end
    local wrong = doctor_judge.no_counters(name)
    if #wrong > 0 then return 'counter', name, concat(wrong, ', ') end
end

function look.limit(name)
    local text = call('HGET', P .. 'limits', name)
    if not text then return nil end
    local set = rules.read(text)
    if not set then return 'limit', name, sub(text, 1, 100) end
    if set.weighted and not exists('weights') then return 'weights', name end
end

function look.use(name)
    local text = call('HGET', P .. 'types', name)
    for _, limit in ipairs(text and types.parse(name, text).use or {}) do
        if call('HEXISTS', P .. 'limits', limit) == 0 then return 'limit-gone', name, limit end
    end
end

-- The last thing that the log of changes says of each limit, and of the limit alone: {what =, rest =}; only: of that one.
function doctor_judge.last_changes(only)
    local last = {}
    for _, change in ipairs(call('LRANGE', P .. 'changes', '0', '999')) do
        local what, limit, rest = match(change, '"what":"(%a+) ([%w_.-]+) ?(.-)"}$')
        if (what == 'set' or what == 'remove') and not last[limit] and (not only or limit == only) then
            last[limit] = {what = what, rest = rest}
        end
    end
    return last
end

-- A limit that was set and not removed.
function look.change(limit)
    local last = doctor_judge.last_changes(limit)[limit]
    if not last or last.what ~= 'set' or call('HEXISTS', P .. 'limits', limit) == 1 then return nil end
    return 'limit-lost', limit, (last.rest:gsub('\\/', '/'))
end

-- ---- Scheduled jobs, batches

local RECORDS = {'^q %S+ [%w_.-]+ [%w_.-]+$', '^l %S+ ' .. LANE .. '$', '^s [%w_.-]+$'}

function look.record(header)
    for _, form in ipairs(RECORDS) do
        if find(header, form) then return nil end
    end
    return 'record', sub(header, 1, 100)
end

function look.occurrence(name)
    if call('HEXISTS', P .. 'schedules', name) == 1 or not score('later', 's ' .. name .. '\n') then return nil end
    return 'occurrence', name
end

function look.schedule(name)
    if call('HEXISTS', P .. 'schedules', name) == 0 or score('later', 's ' .. name .. '\n') then return nil end
    return 'schedule', name
end

function look.batch(name)
    local f = call('HMGET', P .. 'batch:' .. name, 'total', 'done', 'dead', 'cancelled', 'sealed', 'ended')
    local total, ended = tonumber(f[1] or nil), 0
    if not total then return nil end
    for i = 2, 4 do ended = ended + (tonumber(f[i] or 0) or 0) end
    if ended > total then return 'batch', name, ended, count(total, 'job') end
    if f[5] and not f[6] and ended == total then return 'batch-open', name end
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

function look.batches(name)
    if exists('batch:' .. name) or not score('batches', name) then return nil end
    return 'batch-gone', name
end

function look.aside(name)
    local jobs = call('LLEN', P .. 'aside:' .. name)
    if jobs == 0 or call('HEXISTS', P .. 'halted', 'b/' .. name) == 1 then return nil end
    return 'aside', name, count(jobs, 'job')
end

-- ---- What adds up over pages

function look.flight()
    local counts, total = doctor_slots.count(orphans)
    if not counts then return 'slots-uncounted', count(total, 'job') end
end

function look.slots(gate_name)
    local counts, says = doctor_slots.count(orphans), doctor_slots.says(gate_name)
    local leases = counts and counts[gate_name] or 0
    if counts and says and says ~= leases then return 'slots', gate_name, count(says, 'job'), leases end
end

-- The counters of a type, and as text with commas.
local function read_counters(name)
    local values, n = call_safe('HMGET', P .. 'stats:' .. name, unpack(COUNTERS)), {}
    for i = 1, #COUNTERS do n[COUNTERS[i]] = lease.counted(values[i]) end
    return n
end

function doctor_judge.counters(name)
    local n, texts = read_counters(name), {}
    for i = 1, #COUNTERS do texts[i] = us(n[COUNTERS[i]]) end
    return concat(texts, ',')
end

-- How many more jobs were found {parked, leased, later} than are counted; nil: as many, or no more of them than counters have
-- moved by while they were found. And whether they have moved.
function doctor_judge.counters_off(name)
    local kind, lanes, leased, later, was_off, before = match(name, '^(%S+) (%d+) (%d+) (%d+) ([01]) (%S+)$')
    if not kind then return nil end
    local n, moves, i = read_counters(kind), 0, 0
    for text in before:gmatch('[^,]+') do
        i = i + 1
        local moved = n[COUNTERS[i] or ''] and n[COUNTERS[i]] - tonumber(text) or 0
        moves = moves + max(moved, -moved)
    end
    local found = {lanes = tonumber(lanes), leased = tonumber(leased), later = tonumber(later)}
    local parked = found.lanes - (n.parked + n.returned - n.served)
    local runs = found.leased - (n.pulled + n.served - n.done - n.retried - n.dead - n.back)
    local scheduled = found.later - n.scheduled
    local off = max(max(parked, -parked), max(max(runs, -runs), max(scheduled, -scheduled)))
    if off <= moves then return nil end
    return {type = kind, found = found, parked = parked, leased = runs, later = scheduled, was = was_off == '1', moved = moves > 0}
end

-- One pass alone says nothing: SCAN may show a key twice.
function look.counters(name)
    local off = doctor_judge.counters_off(name)
    if not off then return nil end
    local found = off.found
    if not off.was then return 'counters-unsure', off.type end
    return off.moved and 'counters-moving' or 'counters', off.type, found.lanes - off.parked, found.leased - off.leased,
           found.later - off.later, found.lanes, found.leased, found.later
end

local TYPES_MOST = 200 -- whose counters are added up in one call

-- Jobs of each type that were enqueued and that no worker has looked at, by the counters, and of all; nil: types are too many.
function doctor_judge.waiting()
    if call('HLEN', P .. 'types') > TYPES_MOST then return nil end
    local of_type, all = {}, 0
    for _, name in ipairs(call('HKEYS', P .. 'types')) do
        local n = read_counters(name)
        of_type[name] = max(0, n.enqueued - n.pulled - n.parked - n.dropped)
        all = all + of_type[name]
    end
    return of_type, all
end

-- What others push is not counted, so fewer than there are say nothing.
function look.queued()
    local of_type, waiting = doctor_judge.waiting()
    local queued = 0
    for _, name in ipairs(of_type and call('SMEMBERS', P .. 'queues') or {}) do
        local length = call_safe('LLEN', P .. 'queue:' .. name)
        if type(length) == 'number' then queued = queued + length end
    end
    if of_type and waiting > queued then return queued == 0 and 'queued' or 'queued-more', count(waiting, 'job'), queued end
end

function look.dead_bytes(name)
    local counted, found = match(name, '^(%d+) (%d+)$')
    if counted and counted ~= found and us(dead_bytes.read() or -1) == counted then return 'dead-bytes', counted, found end
end

-- ----

function doctor_judge.is_family(family) return look[family] ~= nil end

-- Was that error raised as a key holds something else than it should?
function doctor_judge.is_wrong_kind(raised)
    return find(type(raised) == 'table' and raised.err or tostring(raised), 'WRONGTYPE', 1, true) ~= nil
end

-- Where a key that this needs holds something else, that key is the finding.
local function result(ok, fault, ...)
    if ok then return fault, ... end
    if not doctor_judge.is_wrong_kind(fault) then return 'error', type(fault) == 'table' and fault.err or tostring(fault) end
end

function doctor_judge.look(family, name, deep) return result(pcall(look[family], name, deep)) end

return doctor_judge
