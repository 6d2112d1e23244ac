-- doctor_judge: what must hold of one thing in Redis, and what does not. A thing has a family and a name:
--
--   key NAME             its kind, and whether its name can be read
--   lane LANE            it stands in its ring or at one gate           ringed LANE      it is in a ring, so it has jobs
--   credit LANE          it has starts of its share, so it has jobs
--   ring QUEUE/TYPE      its type waits at one gate or is held          held QUEUE/TYPE  it is held, so its ring has lanes
--   wait QUEUE/GATE      the gate is in wake, or in sleep               waiter QUEUE/GATE NODE  who waits there has something
--                        and lists the queue where only an end opens it
--   wake QUEUE GATE, sleep QUEUE GATE   somebody waits there            star QUEUE       `*` of wake stands for sleep
--   active WORKER, worker WORKER        a worker has its leases and its deadline
--   queue QUEUE          it is registered                                type TYPE        so is it, and it counts in numbers
--   limit LIMIT          its rules can be read                          use TYPE         the limits that it uses are there
--   change LIMIT         it is there when the log of changes says so
--   record HEADER        it can be read                                 occurrence SCHEDULE, schedule SCHEDULE
--   batch BATCH, batches BATCH          its numbers agree; it is there  aside BATCH      jobs stand aside only while it is paused
--   duty GROUP           its last holder is alive                     about FIELD       nothing was lost within a day
--
-- doctor_judge.look(family, name, deep) -> kind of the finding, in words; nil: all is right. deep: looks at all places
-- before it says that somebody stands nowhere.
-- Nothing is written. What is judged is read in the same call, so workers may go on.
--
-- uses: check doctor_slots lane lease leases rules slices types
local doctor_judge = {}

-- Names of limits that gates are named after and that are not there: what waits at their gates waits all the same.
doctor_judge.gone = {}

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

local function exists(key) return call('EXISTS', P .. key) == 1 end
local function score(key, member) return tonumber(call('ZSCORE', P .. key, member) or nil) end

local look = {}

function look.key(name)
    local found = call('TYPE', P .. name).ok
    if found == 'none' then return nil end
    local family, _, kind = doctor_judge.key_parts(name)
    if not family then
        if find(name, '^foreign:') then
            return 'put-aside', format("%s%s is somebody else's, and stood in the place of one of Weir's keys", P, name)
        end
        if families[match(name, '^(%a+):') or ''] then return 'misnamed', format('%s%s: its name cannot be read', P, name) end
        return 'foreign', format('%s%s: not one of the keys of this version', P, name)
    end
    if found ~= kind then return DERIVED[family] and 'in-the-way' or 'wrong-kind', format('%s%s is a %s, not a %s', P, name, found, kind) end
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
    for _, limit in ipairs(doctor_judge.gone) do limits[#limits + 1] = limit end
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
    if not ringed and #gates == 0 then
        return 'lane-nowhere', format('lane %s stands in no ring and at no gate: nobody looks at its %d jobs', name, jobs)
    end
    if #gates + (ringed and 1 or 0) > 1 then
        local ring = ringed and 'its ring, ' or ''
        return 'lane-twice', format('lane %s stands at several places: %sgate %s', name, ring, concat(gates, ', gate '))
    end
end

function look.ringed(name)
    local queue, kind, key = lease.lane_parts(name)
    if exists('lane:' .. name) or not score('ring:' .. queue .. '/' .. kind, key) then return nil end
    return 'no-lane', format('ring %s/%s names lane %s, which has no jobs', queue, kind, name)
end

function look.credit(name)
    local queue, kind, key = lease.lane_parts(name)
    if exists('lane:' .. name) or call('HEXISTS', P .. 'credit:' .. queue .. '/' .. kind, key) == 0 then return nil end
    return 'credit', format('credit:%s/%s names lane %s, which has no jobs', queue, kind, name)
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
        return 'type-nowhere', format('type %s of queue %s waits at no gate and is not held: nobody looks at its %d lanes',
                                      kind, queue, lanes)
    end
    if #gates + (held and 1 or 0) > 1 then
        return 'type-twice', format('type %s of queue %s stands at several places: %sgate %s', kind, queue,
                                    held and 'held, ' or '', concat(gates, ', gate '))
    end
end

function look.held(name)
    local queue, kind = match(name, '^([^/]+)/(.*)$')
    if exists('ring:' .. name) or not score('held:' .. queue, kind) then return nil end
    return 'no-ring', format('held:%s names type %s, which has nothing there', queue, kind)
end

-- ---- Gates

local function order_of(gate_name) return find(gate_name, '/', 1, true) and 'sleep' or 'wake' end

-- Who waits there waits for the end of a job: will one wake it?
local function look_at_end(queue, gate_name)
    local flight, rule = doctor_slots.says(gate_name)
    if not flight or not rule.in_flight then return nil end
    if call('SISMEMBER', P .. 'at:' .. gate_name, queue) == 0 then
        return 'gate-unlisted', format('gate %s does not list queue %s, which has waiters there: no end of a job wakes them',
                                       gate_name, queue)
    end
    if flight < rule.count and call('SISMEMBER', P .. 'opened', gate_name) == 0 then
        return 'gate-unlisted', format('gate %s has room, and queue %s waits there for the end of a job: nobody wakes it', gate_name, queue)
    end
end

function look.wait(name)
    local queue, gate_name = match(name, '^([^/]+)/(.*)$')
    if not exists('wait:' .. name) then return nil end
    local opens = score(order_of(gate_name) .. ':' .. queue, gate_name)
    if not opens then
        return 'gate-unlisted', format('gate %s of queue %s has waiters and is not in %s: it never opens for them', gate_name, queue,
                                       order_of(gate_name))
    end
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
    if keyed ~= is_lane or not is_lane and not is_name(node) then
        return 'misplaced', format('at gate %s of queue %s waits %s, which cannot wait there', gate_name, queue, node)
    end
    if exists((keyed and 'lane:' or 'ring:') .. queue .. '/' .. node) then return look_at_stranger(queue, gate_name, node, keyed) end
    return keyed and 'no-lane' or 'no-ring',
           format('at gate %s of queue %s waits %s, which has nothing there', gate_name, queue, node)
end

local function listed(order, name)
    local queue, gate_name = match(name, '^(%S+) (.*)$')
    if not score(order .. ':' .. queue, gate_name) then return nil end
    if exists('wait:' .. queue .. '/' .. gate_name) and order_of(gate_name) == order then return nil end
    return 'gate-empty', format('%s:%s has gate %s, where nobody waits', order, queue, gate_name)
end

function look.wake(name) return listed('wake', name) end
function look.sleep(name) return listed('sleep', name) end

function look.star(queue)
    local star = score('wake:' .. queue, '*')
    local first = call('ZRANGE', P .. 'sleep:' .. queue, '0', '0', 'WITHSCORES')
    local opens = tonumber(first[2] or nil)
    if star and not opens then return 'star', format('wake:%s has *, and nothing sleeps', queue) end
    if opens and not star then return 'star', format('wake:%s has no *, and lanes sleep: nobody wakes them', queue) end
    if opens and star > opens and star > now then
        return 'star', format('wake:%s has * later than the first gate of sleep: lanes wake late', queue)
    end
end

-- ---- Workers

function look.active(id)
    if not exists('active:' .. id) then return nil end
    local leases = call('HLEN', P .. 'active:' .. id) - call('HEXISTS', P .. 'active:' .. id, '@')
    if not score('workers', id) then
        return 'worker-unlisted', format('worker %s is not in workers: nobody takes its %d jobs back when it dies', id, leases)
    end
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
    if call('HEXISTS', P .. 'active:' .. id, '@') == 0 then
        return 'worker-bare', format('worker %s has a deadline and says nothing of itself', id)
    end
    if till < now then
        local jobs, wrong = call('HLEN', P .. 'active:' .. id) - 1, kept_by(id)
        if wrong then return 'kept', format('worker %s is silent, and its %d jobs cannot be taken back: %s', id, jobs, wrong) end
        return 'silent', format('worker %s is silent, %d s past its deadline; it has %d jobs', id, floor((now - till) / 1000000), jobs)
    end
end

function look.duty(group)
    local holder, till = match(call('HGET', P .. 'duty', group) or '', '^(%S+) (%d+) ')
    if not holder or tonumber(till) > now - SILENT_US or score('workers', holder) then return nil end
    return 'duty', format('duty names group %s, whose last worker %s is gone', group, holder)
end

-- ---- What is registered

function look.queue(name)
    if not exists('queue:' .. name) and not exists('wake:' .. name) and not exists('held:' .. name) then return nil end
    if find(name, '!', 1, true) and not score('alone', name) then
        return 'unregistered', format('%s is not in alone: nobody runs its jobs', name)
    end
    if call('SISMEMBER', P .. 'queues', name) == 1 then return nil end
    return 'unregistered', format('queue %s is not in queues: status and changes of limits pass it over', name)
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
    if call('HEXISTS', P .. 'types', name) == 0 then
        return 'unregistered', format('type %s is not in types: status passes it over', name)
    end
    local wrong = doctor_judge.no_counters(name)
    if #wrong > 0 then return 'counter', format('type %s: what it counts as %s is no whole number', name, concat(wrong, ', ')) end
end

function look.limit(name)
    local text = call('HGET', P .. 'limits', name)
    if not text then return nil end
    local set = rules.read(text)
    if not set then
        return 'limit', format('limit %s: its rules cannot be read, so its types stand still: %s', name, sub(text, 1, 100))
    end
    if set.weighted and not exists('weights') then
        return 'weights', format('limit %s has weights, and none of them is there', name)
    end
end

function look.use(name)
    local text = call('HGET', P .. 'types', name)
    for _, limit in ipairs(text and types.parse(name, text).use or {}) do
        if call('HEXISTS', P .. 'limits', limit) == 0 then
            return 'limit-gone', format('type %s uses limit %s, which is not there: it does not hold it', name, limit)
        end
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
    local rule = last.rest:gsub('\\/', '/')
    return 'limit-lost', format('limit %s is not there, and nobody removed it; it was set to %s', limit, rule)
end

-- ---- Scheduled jobs, batches

local RECORDS = {'^q %S+ [%w_.-]+ [%w_.-]+$', '^l %S+ ' .. LANE .. '$', '^s [%w_.-]+$'}

function look.record(header)
    for _, form in ipairs(RECORDS) do
        if find(header, form) then return nil end
    end
    return 'record', format('later has a record that cannot be read: %s', sub(header, 1, 100))
end

function look.occurrence(name)
    if call('HEXISTS', P .. 'schedules', name) == 1 or not score('later', 's ' .. name .. '\n') then return nil end
    return 'occurrence', format('later has an occurrence of schedule %s, which is not there', name)
end

function look.schedule(name)
    if call('HEXISTS', P .. 'schedules', name) == 0 or score('later', 's ' .. name .. '\n') then return nil end
    return 'schedule', format('schedule %s has no next occurrence: it does not run any more', name)
end

function look.batch(name)
    local f = call('HMGET', P .. 'batch:' .. name, 'total', 'done', 'dead', 'cancelled', 'sealed', 'ended')
    local total, ended = tonumber(f[1] or nil), 0
    if not total then return nil end
    for i = 2, 4 do ended = ended + (tonumber(f[i] or 0) or 0) end
    if ended > total then return 'batch', format('batch %s: %d jobs have ended, of %d', name, ended, total) end
    if f[5] and not f[6] and ended == total then
        return 'batch-open', format('batch %s: all of its jobs have ended, and it has not', name)
    end
end

local DAY_US = 86400 * 1000000

local function seconds_ago(at) return format('%.3f', (now - at) / 1000000) end

local function went_back()
    local from, to, at = match(call('HGET', P .. 'about', 'back') or '', '^(%d+) (%d+) (%d+)$')
    if not at or now - tonumber(at) > DAY_US then return nil end
    local what = 'Redis went back %s s ago: it has lost what was written from %s to %s s before now, at least'
    return 'went-back', format(what, seconds_ago(tonumber(at)), seconds_ago(tonumber(from)), seconds_ago(tonumber(to)))
end

function look.about(field)
    if field == 'back' then return went_back() end
    local at = field == 'lost' and tonumber(call('HGET', P .. 'about', field) or nil)
    if not at or now - at > DAY_US then return nil end
    local ago_s = floor((now - at) / 1000000)
    return 'lost', format('Redis lost all of this namespace %d s ago: jobs, schedules, batches, unique locks, and limits that no worker knew', ago_s)
end

function look.batches(name)
    if exists('batch:' .. name) or not score('batches', name) then return nil end
    return 'batch-gone', format('batches names batch %s, which is not there', name)
end

function look.aside(name)
    local jobs = call('LLEN', P .. 'aside:' .. name)
    if jobs == 0 or call('HEXISTS', P .. 'halted', 'b/' .. name) == 1 then return nil end
    return 'aside', format('batch %s is not paused, and %d of its jobs stand aside', name, jobs)
end

-- ----

-- The counters of a type, as text: "enqueued,pulled,parked,returned,served,done,retried,dead,back,scheduled,dropped".
function doctor_judge.counters(name)
    local values, texts = call_safe('HMGET', P .. 'stats:' .. name, unpack(COUNTERS)), {}
    for i = 1, #COUNTERS do texts[i] = us(lease.counted(values[i])) end
    return concat(texts, ',')
end

function doctor_judge.is_family(family) return look[family] ~= nil end

-- Was that error raised as a key holds something else than it should?
function doctor_judge.is_wrong_kind(raised)
    return find(type(raised) == 'table' and raised.err or tostring(raised), 'WRONGTYPE', 1, true) ~= nil
end

-- Where a key that this needs holds something else, that key is the finding.
function doctor_judge.look(family, name, deep)
    local ok, kind, text = pcall(look[family], name, deep)
    if ok then return kind, text end
    if not doctor_judge.is_wrong_kind(kind) then return 'error', type(kind) == 'table' and kind.err or tostring(kind) end
end

return doctor_judge
