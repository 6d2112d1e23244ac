-- doctor: looks at one page of all that a namespace has, and says what is not as it must be.
--
-- The caller goes through the place '', which is all keys, and through each place that a page names: a key with too many members for
-- one page. Each page is judged within this call, so workers may go on meanwhile. What seems wrong is looked at again (doctor_again).
--
-- KEYS[1] prefix
-- ARGV: now, place ('': all keys; else a key that was named), most (keys or members of the page, 1 to 1000), cursor (that the last
--       page said; none to begin)
-- reply: JSON: next: the cursor, unless this was the last page; bytes that were read; keys of ours; places; suspects: things to look
--        at again; found: what needs no second look, as doctor_faults.find says it; sums: by type lanes, leased, later (jobs in
--        lanes, leased, and in later), before (its counters, where place is types); gates with jobs in flight; gone: limits that
--        gates are named after and that are not there; workers that are not registered
-- writes: nothing
-- uses: doctor_faults doctor_judge lease rates slices

local INLINE = 8      -- members that are looked at with their key
local TOKENS = 1000   -- the same for leases, of which only the tokens are read

local key_parts, note = doctor_judge.key_parts, doctor_faults.note

local page, limits_known -- of this call

local function keep(list, what) page[list][#page[list] + 1] = what end

-- Does that thing seem wrong?
local function look_at(family, name)
    if not doctor_judge.look(family, name) then return false end
    keep('suspects', family .. ' ' .. name)
    if family == 'active' then keep('workers', name) end
    return true
end

local function sum(kind, what, n)
    local of_kind = page.sums[kind] or {lanes = 0, leased = 0, later = 0}
    page.sums[kind] = of_kind
    of_kind[what] = (of_kind[what] or 0) + n
end

local function note_limit(gate_name)
    local limit = match(gate_name, '^([^#]+)#')
    if not limit or limits_known[limit] then return end
    limits_known[limit] = true
    if call('HEXISTS', P .. 'limits', limit) == 0 then keep('gone', limit) end
end

-- ---- Members of keys: member(rest of the key's name, member)

local member = {}

function member.ring(name, key) look_at('ringed', name .. '/' .. key) end
function member.wait(name, node) look_at('waiter', name .. ' ' .. node) end
function member.credit(name, key) look_at('credit', name .. '/' .. key) end
function member.held(queue, kind)
    if look_at('held', queue .. '/' .. kind) then return end
    keep('found', note('held', kind, queue))
end
function member.wake(queue, gate_name)
    if gate_name ~= '*' then look_at('wake', queue .. ' ' .. gate_name) end
end
function member.sleep(queue, gate_name) look_at('sleep', queue .. ' ' .. gate_name) end
function member.workers(_, id) look_at('worker', id) end
function member.limits(_, name) look_at('limit', name) end
function member.schedules(_, name) look_at('schedule', name) end
function member.batches(_, name) look_at('batches', name) end
function member.about(_, field) look_at('about', field) end
function member.duty(_, group) look_at('duty', group) end

function member.types(_, name)
    if not is_name(name) then return end
    page.sums[name] = {lanes = 0, leased = 0, later = 0, before = doctor_judge.counters(name)}
    look_at('use', name)
    local ok, keyless = pcall(rates.keyless, name)
    if ok and keyless and 2 * keyless.jobs >= keyless.of then
        keep('found', note('keyless', name, keyless.jobs, doctor_judge.count(keyless.of, 'job'), keyless.path, keyless.limit))
    end
end

function member.later(_, record)
    local header = match(record, '^[^\n]*')
    local broken = doctor_faults.find('record', header)
    if broken then return keep('found', broken) end
    local kind, of_lane = match(header, '^q %S+ %S+ (%S+)$'), match(header, '^l %S+ (.*)$')
    if of_lane then _, kind = lease.lane_parts(of_lane) end
    if kind then sum(kind, 'later', 1) end
    if sub(header, 1, 2) == 's ' then look_at('occurrence', sub(header, 3)) end
end

function member.active(_, token)
    if token == '@' then return end
    local of_lane = lease.lane_of(token)
    if not of_lane then return keep('found', note('token', sub(token, 1, 200))) end
    local _, kind = lease.lane_parts(of_lane)
    sum(kind, 'leased', 1)
    for name in lease.gates_of(token) do keep('gates', name) end
end

-- What goes through a kind of key.
local scan = {zset = 'ZSCAN', hash = 'HSCAN'}
-- How many are in it.
local size = {zset = function(key) return call('ZCARD', key) end, hash = function(key) return call('HLEN', key) end}

-- One page of the members of a key; returns the next cursor.
local function look_at_members(key, cursor, most)
    local family, rest, kind = key_parts(key)
    local load = slices.load()
    local found, next_cursor = slices.scan(scan[kind], P .. key, cursor, most, load)
    for i = 1, #found, 2 do member[family](rest, found[i]) end
    page.bytes = page.bytes + load.all - load.left
    return next_cursor
end

local function look_at_tokens(key)
    for _, token in ipairs(call('HKEYS', P .. key)) do
        page.bytes = page.bytes + #token
        member.active('', token)
    end
end

-- Members now, where they are few; else they are named as a place. Of types, who looks asks first.
local function look_into(key, family, kind)
    if family == 'types' then return end
    local count = size[kind](P .. key)
    if family == 'active' and count <= TOKENS then return look_at_tokens(key) end
    if count > INLINE or family == 'later' and count > 0 then -- its members may be large
        keep('places', key)
        return
    end
    local cursor = '0'
    repeat cursor = look_at_members(key, cursor, 100) until cursor == '0'
end

-- ---- Keys

local of_key = {}

function of_key.queue(name) look_at('queue', name) end
function of_key.stats(name) look_at('type', name) end
function of_key.lane(name)
    local _, kind = lease.lane_parts(name)
    sum(kind, 'lanes', call('LLEN', P .. 'lane:' .. name))
    look_at('lane', name)
end
function of_key.ring(name) look_at('ring', name) end
function of_key.wake(name)
    look_at('queue', name)
    look_at('star', name)
end
function of_key.held(name) look_at('queue', name) end
function of_key.sleep(name) look_at('star', name) end
function of_key.active(id) look_at('active', id) end
function of_key.batch(name) look_at('batch', name) end
function of_key.aside(name) look_at('aside', name) end
function of_key.changes()
    for limit, last in pairs(doctor_judge.last_changes()) do
        if last.what == 'set' and call('HEXISTS', P .. 'limits', limit) == 0 then look_at('change', limit) end
    end
end

function of_key.dead() keep('found', note('dead', doctor_judge.count(call('ZCARD', P .. 'dead'), 'dead job'))) end

function of_key.wait(name)
    look_at('wait', name)
    note_limit(match(name, '/(.*)$'))
end

-- Jobs in flight: a concurrency gate's word, or "~n" behind those of one that was one before. States may be long.
function of_key.gate(name)
    local rule, first = match(call('GETRANGE', P .. 'gate:' .. name, '0', '199'), '^%d+ %d+ %S+ %S+ (%S+) (%d+)')
    local flight
    if rule and find(rule, 'concurrency:', 1, true) == 1 then
        flight = first
    else
        flight = match(call('GETRANGE', P .. 'gate:' .. name, '-20', '-1'), '~(%d+)$')
    end
    if flight and flight ~= '0' then keep('gates', name) end
end

local function look_at_key(key)
    page.keys = page.keys + 1
    if look_at('key', key) then return end
    local family, rest, kind = key_parts(key)
    if not family then return end -- it has gone meanwhile
    if of_key[family] then
        local ok, raised = pcall(of_key[family], rest)
        if not ok and not doctor_judge.is_wrong_kind(raised) then
            keep('found', note('error', format('%s: %s', key, type(raised) == 'table' and raised.err or tostring(raised))))
        end
    end
    if member[family] then look_into(key, family, kind) end
end

-- Of the namespace's prefix what SCAN would read as a pattern.
local function pattern() return P:gsub('[%[%]*?\\]', '\\%0') .. '*' end

local function look_at_keys(cursor, most)
    local keys = call('SCAN', cursor, 'MATCH', pattern(), 'COUNT', us(most))
    for _, key in ipairs(keys[2]) do look_at_key(sub(key, #P + 1)) end
    return keys[1]
end

local function doctor(ARGV)
    local place, most, cursor = ARGV[2] or '', tonumber(ARGV[3]), ARGV[4] or '0'
    if #ARGV < 3 or not is_whole(most, 1) or most > 1000 or not find(cursor, '^%d+$') then
        return refuse('doctor: wants now, place, most from 1 to 1000, cursor')
    end
    local family, _, kind = key_parts(place)
    if place ~= '' and not member[family or ''] then return refuse('doctor: %s is not a place', place) end
    page = {bytes = 0, keys = 0, places = {}, suspects = {}, found = {}, sums = {}, gates = {}, gone = {}, workers = {}}
    limits_known = {}
    local last = '0'
    if place == '' then
        last = look_at_keys(cursor, most)
    elseif call('TYPE', P .. place).ok == kind then
        last = look_at_members(place, cursor, most)
    end
    if last ~= '0' then page.next = {last} end
    return answer(page)
end

return doctor
